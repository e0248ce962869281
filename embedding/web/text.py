"""What the pages say, in Korean and English."""

from __future__ import annotations

from collections.abc import Mapping

from embedding.web import phrases

LANGUAGES = ("ko", "en")

KO: Mapping[str, str] = {
    "name": "여론",
    "tagline": "말이 움직이는 것을 본다",
    "brief": "브리프",
    "snapshots": "스냅샷",
    "search": "낱말 찾기",
    "search_hint": "낱말을 입력하세요",
    "search_button": "찾기",
    "other_language": "English",
    "logout": "나가기",
    "skip": "본문으로",
    "kicker": "{window}의 말",
    "against": "{window} 대비",
    "pulled_more": "곁에 더 자주",
    "pulled_less": "곁에 덜 자주",
    "support_sources": "변화의 몫: {shares}",
    "support_authors": "일부 글쓴이의 글을 빼면 뚜렷하지 않습니다",
    "support_source": "{source}의 글을 빼면 뚜렷하지 않습니다",
    "stories": "무슨 일이 있었나",
    "stories_about": "비슷하게 쓰이면서 함께 달라진 낱말을 하나로 묶었습니다. 가장 확실한 것부터.",
    "stories_none": "눈에 띄게 달라진 것이 없습니다. 아래 순위는 우연만으로도 나올 수 있습니다.",
    "story_moved": "의미가 달라짐",
    "story_born": "새로 나타남",
    "story_risen": "더 자주 쓰임",
    "story_fallen": "덜 쓰임",
    "story_more": "외 {n}개",
    "story_since": "{window}부터",
    "story_days": "{first} – {last}에 쓴 글",
    "story_documents": "문서 {n}건",
    "story_few": "글쓴이 몇 명의 글",
    "story_sources": "출처 {n}곳",
    "story_typical": "대표 글",
    "nothing_moved": "뚜렷이 달라진 말이 없습니다",
    "lede_moved_documents": "의미가 가장 뚜렷이 달라진 말은 ‘{word}’입니다.",
    "lede_pulled": "곁에 더 자주 오는 말: {words}",
    "lede_moved": "뜻이 가장 크게 움직인 말은 ‘{word}’입니다.",
    "lede_born": "새로 나타난 말은 ‘{word}’ 등 {n}개입니다.",
    "lede_born_one": "새로 나타난 말은 ‘{word}’입니다.",
    "lede_risen": "가장 많이 늘어난 말은 ‘{word}’입니다. "
    "문서 1,000건 가운데 {now}건에 쓰였고, 앞선 창 {windows}개를 통틀어서는 {usual}건이었습니다.",
    "lede_risen_one": "가장 많이 늘어난 말은 ‘{word}’입니다. "
    "문서 1,000건 가운데 {now}건에 쓰였고, 바로 앞 창에서는 {usual}건이었습니다.",
    "lede_none": "이 창의 모든 움직임은 비슷한 빈도의 낱말들이 흔히 보이는 폭 안에 있습니다.",
    "moved": "움직인 말",
    "moved_documents": "그 말을 쓴 문서들에서 쓰임이 가장 뚜렷이 달라진 순서.",
    "moved_about": "가까이 쓰이는 낱말이 가장 많이 바뀐 순서. 세로 눈금은 비슷한 빈도의 보통 낱말.",
    "born": "새 말",
    "born_about": "이 창까지 처음으로 여러 문서에 쓰인 말. 앞서는 없거나 드물었습니다.",
    "risen": "늘어난 말",
    "risen_about": "앞선 창들을 통틀어 본 것보다 쓴 문서의 비율이 늘어난 말. "
    "여러 소스에서 고루 늘어난 말이 앞섭니다.",
    "fallen": "줄어든 말",
    "fallen_about": "앞선 창들을 통틀어 본 것보다 쓴 문서의 비율이 줄어든 말.",
    "empty_ranking": "이 창에는 없습니다.",
    "then": "그때",
    "now": "지금",
    "then_now": "가까운 말, 그때와 지금",
    "shift": "움직임",
    "expected": "보통 {value}",
    "sure": "뚜렷함",
    "unsure": "흔한 폭 안",
    "unsure_rows": "뚜렷하지 않은 순위: 흔한 폭 안의 낱말 {n}개",
    "none_clear_moved": "뜻이 뚜렷이 움직인 낱말이 없습니다. 아래는 우연만으로도 나올 수 있는 "
    "순위입니다.",
    "none_clear": "뚜렷한 낱말이 없습니다. 아래는 우연만으로도 나올 수 있는 순위입니다.",
    "sure_about": "q = {q}: 이만큼 뚜렷한 말 가운데 우연일 것으로 보이는 비율",
    "documents": "문서",
    "tokens": "토큰",
    "sources": "소스",
    "source": "소스",
    "per_1000": "문서 1,000건당",
    "documents_change": "문서 {before} → {now}",
    "in_sources": "{n}곳에서",
    "only_source": "{source}에서만",
    "completeness": "얼마나 새롭고 온전한가",
    "window_closed": "창",
    "read": "읽은 것",
    "change": "앞 창 대비",
    "missing": "이 창에서 아무것도 읽지 못함",
    "vocabulary": "낱말 수",
    "live": "지금 스트림",
    "live_unreachable": "파라미터 서버에 연결되지 않습니다. 스냅샷은 그대로 볼 수 있습니다.",
    "live_loading": "묻는 중…",
    "words_per_second": "초당 낱말",
    "lag_p50": "지연 p50",
    "lag_p95": "지연 p95",
    "nodes": "노드",
    "csv": "CSV",
    "json": "JSON",
    "permalink": "이 브리프의 고유 주소",
    "all_rows": "전체 CSV",
    "basis": "추정: {estimator} · 설정 {digest} · 스냅샷 {id}",
    "compared_count": "낱말 {n}개를 견주었습니다.",
    "frequency": "소스별 빈도",
    "frequency_about": "그 말을 쓴 문서, 문서 1,000건당.",
    "shift_over": "창마다의 움직임",
    "shift_about": "앞 창과 견주어 바뀐 이웃 낱말의 비율과 95 % 구간. 점선은 첫 창과의 차이, "
    "굵은 점선은 비슷한 빈도의 낱말 97.5 %가 넘지 않는 선.",
    "shift_none": "아직 두 창에서 견줄 수 없습니다. 벡터가 있는 창이 둘이 되면 보입니다.",
    "shift_previous": "앞 창과",
    "shift_first": "첫 창과",
    "noise_line": "흔한 폭",
    "all_sources": "모든 소스",
    "new_neighbour": "새로 가까워짐",
    "lost_neighbour": "멀어짐",
    "compare": "견주기",
    "figures": "표로 보기",
    "window": "창",
    "count": "횟수",
    "nearest": "가까운 말",
    "not_in_vocabulary": "이 창의 어휘에는 없습니다.",
    "no_vector": "아직 벡터가 없습니다.",
    "interval": "95 % 구간",
    "unknown_word": "‘{word}’ 자료가 없습니다",
    "unknown_about": "이 말을 담은 스냅샷이 없습니다. 비슷한 철자의 낱말:",
    "nearest_spellings": "비슷한 철자의 낱말:",
    "unknown_none": "이 말을 담은 스냅샷도, 비슷한 철자의 낱말도 없습니다.",
    "results": "‘{query}’ 찾기",
    "no_results": "이 글자를 담은 낱말이 없습니다.",
    "type_something": "찾을 낱말을 입력하세요.",
    "id": "고유 이름",
    "parent": "앞 스냅샷",
    "broken": "읽을 수 없는 스냅샷",
    "empty_title": "아직 창이 하나도 닫히지 않았습니다",
    "empty_about": "첫 스냅샷이 만들어지면 이 자리에 브리프가 나타납니다. 스트림을 시작하고 "
    "첫 창이 끝나기를 기다리세요.",
    "computing_title": "보고서를 셈하고 있습니다",
    "computing_about": "이 창의 보고서가 아직 없어 지금 셈하는 중입니다. 잠시 뒤 저절로 "
    "새로 고칩니다.",
    "error_title": "보여 드릴 수 없습니다",
    "bad_address": "이 주소의 값으로는 보일 것이 없습니다. 값을 고치거나 메뉴에서 다시 고르세요.",
    "not_yet": "아직 셈하고 있습니다. 잠시 뒤 다시 여세요.",
    "detail": "자세히",
    "broken_one": "{window}: 파일이 모자라거나 만들 때와 달라서 빼고 보입니다.",
    "snapshot_missing": "찾는 스냅샷이 없거나 읽을 수 없습니다. 스냅샷 쪽에 있는 것을 고르세요.",
    "not_found_title": "그런 쪽이 없습니다",
    "not_found_about": "주소를 확인하거나 최근 브리프로 가세요.",
    "server_error": "예상하지 못한 오류입니다. 기록은 서버의 로그에 있습니다.",
    "back": "최근 브리프로",
    "login_title": "들어가기",
    "login_about": "‘yeoron web’이 시작할 때 알려 준 토큰, 또는 토큰 파일의 한 줄을 붙여 넣으세요. "
    "이 쪽을 띄운 사람이 알고 있습니다.",
    "token": "토큰",
    "login_button": "들어가기",
    "login_wrong": "토큰이 맞지 않습니다. 토큰 파일의 한 줄을 그대로 붙여 넣으세요.",
    "login_later": "토큰이 여러 번 틀렸습니다. {seconds}초 뒤에 다시 해 보세요.",
    "note_one_snapshot": "{window}이 첫 창입니다. 두 번째 창이 닫히면 무엇이 달라졌는지 보입니다.",
    "note_unread_model": "아직 글이 모자라 낱말의 뜻을 배우지 못했습니다. 더 모이면 무엇이 "
    "달라졌는지 보입니다.",
    "note_unsettled_window": "글을 다 익히기 전에 창을 닫아 벡터가 덜 확실합니다.",
    "note_empty_window": "{window}에는 읽은 문서가 없습니다.",
    "note_empty_before": "바로 앞 창에는 읽은 문서가 없어 빈도를 견주기 어렵습니다.",
    "note_tokenizer_changed": "두 창 사이에 형태소 분석기가 바뀌었습니다. 달리 나뉜 낱말이 "
    "새 말이나 움직인 말로 보일 수 있습니다.",
    "note_too_few_documents": "{window}: 앞 창과 이 창에서 여러 글쓴이의 문서에 충분히 쓰인 낱말이 "
    "없어 쓰임이 달라졌는지 말할 수 없습니다.",
    "note_stream_control": "창마다가 아니라 스트림 전체에서 잘못 알리는 창이 드물도록 판정합니다. "
    "그래서 뚜렷하다고 하는 낱말이 더 적습니다.",
    "note_sources_changed": "두 창에 함께 있는 소스가 없어 모두 합쳐 견주었습니다.",
    "note_broken_snapshot": "읽을 수 없는 앞 스냅샷을 빼고 견주었습니다.",
    "note_unreadable": "읽을 수 없어 뺀 스냅샷 {n}개:",
    "note_unreadable_why": "까닭 보기",
    "note_older_report": "더 새로운 창 {window}의 보고서를 셈하고 있어 그 앞 창을 보입니다.",
    "until": "{end}까지",
    "chart_hint": "화살표 키로 창을 옮겨 다닐 수 있습니다",
}

EN: Mapping[str, str] = {
    "name": "Yeoron",
    "tagline": "See words move",
    "brief": "Brief",
    "snapshots": "Snapshots",
    "search": "Find a word",
    "search_hint": "Type a word",
    "search_button": "Find",
    "other_language": "한국어",
    "logout": "Leave",
    "skip": "To the content",
    "kicker": "The words of {window}",
    "against": "against {window}",
    "pulled_more": "beside it more often",
    "pulled_less": "beside it less often",
    "support_sources": "share of the change: {shares}",
    "support_authors": "not clear without one group of authors",
    "support_source": "not clear without {source}",
    "stories": "What happened",
    "stories_about": "Words that changed together and are used alike. The surest come first.",
    "stories_none": "Nothing stands out. The lists below may be pure chance.",
    "story_moved": "changed in meaning",
    "story_born": "new",
    "story_risen": "used more often",
    "story_fallen": "used less often",
    "story_more": "and {n} more",
    "story_since": "since {window}",
    "story_days": "written {first} – {last}",
    "story_documents": "{n} documents",
    "story_few": "by few authors",
    "story_sources": "{n} sources",
    "story_typical": "Typical documents",
    "nothing_moved": "No word changed clearly",
    "lede_moved_documents": "“{word}” changed most clearly in meaning.",
    "lede_pulled": "Beside it stand more often: {words}.",
    "lede_moved": "“{word}” moved furthest in meaning.",
    "lede_born": "{n} words are new, led by “{word}”.",
    "lede_born_one": "“{word}” is new.",
    "lede_risen": "“{word}” rose most: {now} of 1,000 documents use it, against {usual} in the "
    "{windows} windows before.",
    "lede_risen_one": "“{word}” rose most: {now} of 1,000 documents use it, against {usual} in the "
    "window before.",
    "lede_none": "All movement in this window is within what words of like frequency usually show.",
    "moved": "Moved",
    "moved_documents": "Words whose use changed most clearly, by the documents that hold them.",
    "moved_about": "Words whose nearest words were exchanged most. The tick marks a usual word of "
    "like frequency.",
    "born": "New words",
    "born_about": "Words that enough documents use for the first time; before, none or few did.",
    "risen": "Risen",
    "risen_about": "Words that a larger share of documents uses than in the windows before, taken "
    "together; spread over sources ranks first.",
    "fallen": "Fallen",
    "fallen_about": "Words that a smaller share of documents uses than in the windows before, "
    "taken together.",
    "empty_ranking": "None in this window.",
    "then": "Then",
    "now": "Now",
    "then_now": "Nearest words, then and now",
    "shift": "Shift",
    "expected": "usual {value}",
    "sure": "clear",
    "unsure": "within noise",
    "unsure_rows": "Ranking without significance: {n} words within the noise",
    "none_clear_moved": "No word’s meaning moved significantly. What is folded below is a ranking "
    "that chance alone can give.",
    "none_clear": "No word is significant. What is folded below is a ranking that chance alone can "
    "give.",
    "sure_about": "q = {q}: expected share of chance finds among words this clear",
    "documents": "Documents",
    "tokens": "Tokens",
    "sources": "Sources",
    "source": "Source",
    "per_1000": "per 1,000 documents",
    "documents_change": "{before} → {now} documents",
    "in_sources": "in {n} sources",
    "only_source": "only in {source}",
    "completeness": "How fresh, how complete",
    "window_closed": "Window",
    "read": "Read",
    "change": "Against before",
    "missing": "nothing was read in this window",
    "vocabulary": "Vocabulary",
    "live": "The stream now",
    "live_unreachable": "The parameter server cannot be reached. Snapshots stay readable.",
    "live_loading": "Asking…",
    "words_per_second": "Words a second",
    "lag_p50": "Lag p50",
    "lag_p95": "Lag p95",
    "nodes": "Nodes",
    "csv": "CSV",
    "json": "JSON",
    "permalink": "Permanent link to this brief",
    "all_rows": "All as CSV",
    "basis": "Estimator: {estimator} · settings {digest} · snapshot {id}",
    "compared_count": "{n} words were compared.",
    "frequency": "Frequency by source",
    "frequency_about": "Documents that use the word, per 1,000 documents.",
    "shift_over": "Shift from window to window",
    "shift_about": "Share of the nearest words exchanged since the window before, with its 95 % "
    "interval. Thin dashes: since the first window. Heavy dashes: what 97.5 % of the words of like "
    "frequency stay below.",
    "shift_none": "It cannot be compared in two windows yet: two of them have to know its vector.",
    "shift_previous": "Since the window before",
    "shift_first": "Since the first",
    "noise_line": "Noise",
    "all_sources": "All sources",
    "new_neighbour": "came near",
    "lost_neighbour": "went away",
    "compare": "Compare",
    "figures": "As a table",
    "window": "Window",
    "count": "Count",
    "nearest": "Nearest words",
    "not_in_vocabulary": "Not in this window’s vocabulary.",
    "no_vector": "It has no vector yet.",
    "interval": "95 % interval",
    "unknown_word": "Nothing is known of “{word}”",
    "unknown_about": "No snapshot holds this word. The nearest spellings:",
    "nearest_spellings": "The nearest spellings:",
    "unknown_none": "No snapshot holds this word, nor one of a similar spelling.",
    "results": "Search for “{query}”",
    "no_results": "No word holds these letters.",
    "type_something": "Type a word to look for.",
    "id": "Id",
    "parent": "Parent",
    "broken": "Snapshots that cannot be read",
    "empty_title": "No window has closed yet",
    "empty_about": "The brief appears here when the first snapshot is cut. Start the stream and "
    "wait for its first window to end.",
    "computing_title": "The report is being computed",
    "computing_about": "There is no report of this window yet, so it is computed now. This page "
    "refreshes by itself.",
    "error_title": "This cannot be shown",
    "bad_address": "There is nothing to show for the values in this address. Correct them, or "
    "choose again from the menu.",
    "not_yet": "It is still being computed. Open it again in a moment.",
    "detail": "Detail",
    "broken_one": "{window}: a file is missing or is not what was written, so it is left out.",
    "snapshot_missing": "This snapshot is not there or cannot be read. Choose one of those on the "
    "page Snapshots.",
    "not_found_title": "There is no such page",
    "not_found_about": "Check the address, or go to the latest brief.",
    "server_error": "Something unexpected went wrong. The server’s log holds the details.",
    "back": "To the latest brief",
    "login_title": "Log in",
    "login_about": "Paste the token that `yeoron web` printed when it started, or the line of its "
    "token file. Whoever started this page has it.",
    "token": "Token",
    "login_button": "Log in",
    "login_wrong": "That is not the token. Paste the one line of the token file as it is.",
    "login_later": "The token was wrong too often. Try again in {seconds} seconds.",
    "note_one_snapshot": "{window} is the first window. What changed shows when a second one "
    "closes.",
    "note_unread_model": "Too little text has been read for the model to have learnt what words "
    "mean. What changed shows when there is more.",
    "note_unsettled_window": "The window was cut before its text had been learnt to the end, so "
    "its vectors are less sure.",
    "note_empty_window": "No document was read in {window}.",
    "note_empty_before": "No document was read in the window before, so frequencies compare badly.",
    "note_tokenizer_changed": "The tokenizer changed between the two windows: words that it splits "
    "in another way may appear as new or moved.",
    "note_too_few_documents": "{window}: no word is used in enough documents of different authors, "
    "before it and in it, to say whether its use changed.",
    "note_stream_control": "False findings are kept few over the life of the stream, not in each "
    "window. So fewer words are called.",
    "note_sources_changed": "No source was read in both windows; all were pooled.",
    "note_broken_snapshot": "An earlier snapshot cannot be read and was left out.",
    "note_unreadable": "Snapshots that cannot be read and were left out ({n}):",
    "note_unreadable_why": "See why",
    "note_older_report": "The report of the newer window {window} is being computed; this is the "
    "one before.",
    "until": "until {end}",
    "chart_hint": "Arrow keys move from window to window",
}

TEXTS: Mapping[str, Mapping[str, str]] = {
    "ko": {**KO, **phrases.KO},
    "en": {**EN, **phrases.EN},
}


class Words:
    """The texts of one language."""

    def __init__(self, language: str) -> None:
        self.language = language if language in TEXTS else LANGUAGES[0]
        self._texts = TEXTS[self.language]

    def __call__(self, key: str, **values: object) -> str:
        """The text `key` with its places filled."""
        return self._texts[key].format(**values)

    @property
    def other(self) -> str:
        """The language to switch to."""
        return LANGUAGES[1 - LANGUAGES.index(self.language)]


def choose(asked: str | None, kept: str | None, accept: str) -> str:
    """The language: asked for in the address, kept in a cookie, or preferred by the browser."""
    for one in (asked, kept):
        if one in LANGUAGES:
            return str(one)
    best, weight = LANGUAGES[0], -1.0
    for part in accept.split(","):
        tag, _, rest = part.strip().partition(";")
        language = tag.strip().lower().split("-")[0]
        if language not in LANGUAGES:
            continue
        try:
            q = float(rest.partition("=")[2]) if rest else 1.0
        except ValueError:
            q = 0.0
        if q > weight:
            best, weight = language, q
    return best
