{{- define "yeoron.name" -}}
{{- printf "%s" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "yeoron.labels" -}}
app.kubernetes.io/name: yeoron
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "yeoron.selector" -}}
app.kubernetes.io/name: yeoron
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "yeoron.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The name by which other pods reach the control pod, whatever its address is now. */ -}}
{{- define "yeoron.control" -}}
{{ include "yeoron.name" . }}-control-0.{{ include "yeoron.name" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "yeoron.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "yeoron.container" -}}
image: {{ include "yeoron.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "yeoron.settings" -}}
- {name: YEORON_SETTINGS, value: /etc/yeoron/yeoron.toml}
- {name: YEORON_PATHS__SOURCES, value: /etc/yeoron/sources.toml}
- {name: YEORON_CLUSTER__NODES, value: {{ add .Values.control.workers .Values.nodes.replicas | quote }}}
{{- if .Values.database.url }}
- {name: YEORON_DATABASE__URL, value: {{ .Values.database.url | quote }}}
{{- end }}
{{- if .Values.database.passfileSecret }}
- {name: YEORON_DATABASE__PASSFILE, value: /run/yeoron/passfile}
{{- end }}
{{- end }}

{{- define "yeoron.mounts" -}}
- {name: home, mountPath: /var/lib/yeoron}
- {name: settings, mountPath: /etc/yeoron, readOnly: true}
- {name: private, mountPath: /run/yeoron}
- {name: tmp, mountPath: /tmp}
- {name: shm, mountPath: /dev/shm}
{{- end }}

{{- define "yeoron.volumes" -}}
- name: settings
  configMap: {name: {{ include "yeoron.name" . }}}
- name: private
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
- name: tmp
  emptyDir: {}
- name: shm
  emptyDir: {medium: Memory, sizeLimit: 1Gi}
{{- with .Values.database.passfileSecret }}
- name: passfile
  secret: {secretName: {{ . | quote }}}
{{- end }}
{{- end }}

{{- /* A Secret's files are root's, readable by a group; libpq takes a file of passwords only of mode 600. */ -}}
{{- define "yeoron.passfile" -}}
{{- if .Values.database.passfileSecret }}
- name: passfile
  {{- include "yeoron.container" . | nindent 2 }}
  command: [install, -m, "600", /run/secret/passfile, /run/yeoron/passfile]
  volumeMounts:
    - {name: passfile, mountPath: /run/secret, readOnly: true}
    - {name: private, mountPath: /run/yeoron}
{{- end }}
{{- end }}

{{- define "yeoron.claim" -}}
- metadata: {name: home}
  spec:
    accessModes: [ReadWriteOnce]
    resources: {requests: {storage: {{ .storage }}}}
    {{- with .storageClass }}
    storageClassName: {{ . | quote }}
    {{- end }}
{{- end }}
