"""A style of texts for the mask: boards of neighbourhoods, petitions, inquiries, flea markets.

Also notices of clubs and study groups and posters for missing people and pets; written by somebody
who had not seen the rules. It was first run once they were mended for `grammar_casual`, before any
rule was written for it. In a line {} is the piece (a letter in it narrows its form), $ and a letter
a word, _ and § digits, ¶ a line break, ~ in a shape a blank; | parts the lines.
"""

import random
import re
from collections.abc import Iterator

KINDS = ("phone", "resident", "card", "account", "email", "handle")
_TEXT = """
==phone== $z 찾습니다. 보신 분 {} | 사례금 $w 드립니다. $l$:{} ($n) | 직거래는 $p 앞, 문자 {} 주세요
| $g 팝니다 $w¶{}¶쿨거래 네고 가능 | 답변은 {}번으로 꼭 좀 부탁드립니다 | $c 총무 $n ({}) | 회비
문의는 총무 $n {}에게 | 동대표 $n $l {} | 신청$:이름, 학교 적어서 {}으로 문자 | 청원인 대표 $n (전화
{}) | 탄원서 보내실 곳 팩스 {l} | 설치기사님 번호 {} 저장해 두세요 | 제 폰¶{}¶아무 때나 괜찮습니다 |
{} 문자만 받아요 | {} <- 여기로 연락 주세요 | ☎{} | 📞 {} (문자 가능) | H.P) {} | 급해요!! {} 전화
좀ㅠㅠ | 카톡 안 하시는 분은 {} 문자 주세요 | 할머니가 $d 집을 나가셨습니다. 보신 분은 {} 또는 112로
신고 바랍니다 | 아이 아빠 {} 밤늦게도 괜찮습니다 | 임시보호 문의 {}($n) | 인증문자가 {m}로 안 와요 |
안심번호 {v}로 전화하시면 연결됩니다 | 인터넷전화 {v} | [나눔] $g 드려요. {} 선착순 | 수학 과외
구합니다. 학생 어머니 {} | 해외 체류 중이라 {i} 로 부탁드려요 | $p 상가 부동산 {l} 친절해요 | 이삿짐
$n 실장님 {} 추천합니다
==resident== 성명 $n / 주민번호 {} / 주소 $p | 청원인 $n ({}) | 위임인$:$n, 주민등록번호 {} |
실명인증이 안 돼요. 주민번호 {} 입니다 | 가입자 $n {} 해지 요청합니다 | 외국인등록번호$:{f} |
외국인등록증 번호 {f} 인데 본인인증이 안 됩니다 | 앞뒤 다 적으라고 하네요 주민번호 {} | 주민번호는
{}이고 이름은 $n입니다 | 고소인 $n ({}) 은 엄벌을 탄원합니다 | 피해자 $n 주민등록번호 {} |
탄원인$:$n ({}) (인) | 주민등록번호¶{}¶$n | 주민번호$:{} (본인) | $n {} 이렇게 적힌 신분증
주웠습니다 | $p 앞에서 주민등록증 주웠어요. $n님, {} | 주민{} $n 보험 가입내역 확인 부탁 |
여행자보험용$:$n {} | 강사 $n [{}] 소득신고 해 주세요 | 아이 주민번호가 {y}인데 접종 기록이 안 떠요
| 어린이집 대기 신청, 아동 $n {y} | 세대주 $n(주민번호 {}) 외 §명 전입 확인 | 입주자 카드$:$n / {} /
§0_호 | 매도인 $n (주민등록번호 {}) | 진정인 $n, {} , 위와 같이 진정합니다 | 서명$:$n
생년월일·주민번호 {} | 연명부 1번 $n {} $p | 어머니를 찾습니다. $n, {}. 치매가 있으십니다 | 등록번호
{f} (외국인) $d 만료인데 연장되나요 | <신청서> 이름$:$n 주민번호$:{} 반:초급 | 통관부호 대신
주민번호 {}로 해도 될까요
==card== 환불 카드 {} 맞는지 봐 주세요 | 결제카드 $k ({}) | $k 주웠어요. 번호 {} $n님 것 같아요 |
자동이체 카드를 {}로 바꿔 주세요 | 등록된 카드 {} 삭제해 주세요 | 결제수단$:$k {} 일시불 | 아멕스
{x} 결제가 안 됩니다 | American Express {x} 로 $w 결제했어요 | 해외결제 시도 문자 왔는데 {} 제 카드
맞아요 | 분실신고합니다 $k {} | 분실카드 번호 {} 정지 부탁드립니다 | 체크카드 {} 로 $w 빠져나갔어요
| 새 카드번호 {}, 관리비 자동납부 변경 | 관리비 카드납부 신청$:$n $k {} | 카드 앞자리부터 다
불러달래서 {} 알려줬는데 사기인가요 | 카드사 $k / 번호 {} / 할부 §개월 | $c 법인카드 {} 누가
쓰셨나요? | 총무님 모임카드 번호가 {} 인가요 | 모임통장 카드 {}로 회식비 긁어 주세요 | 정기후원 카드
변경합니다. $n, {} | 후원 결제$:{} 매월 $w | 카드({})로 예약금 결제 완료 | 예약 보증 카드 {}
유효기간 0§/28 | 부분취소 부탁드려요 카드번호 {} | 승인취소 $d $k {} $w | 카드 정보$:{}¶이름$:$n |
교통카드 아니고 신용카드 {} 이거예요 | $k로 했고요 {} 요 | 포인트 적립 누락, 결제카드 {} | 매출전표
카드번호 {} 승인 $w | 카드뒷면 말고 앞면 번호 {} 이거 맞죠?
==account== $b {} $n 앞으로 입금해 주세요 | 계좌$:$b {} (예금주 $n) | 입금계좌 $b {} $n | $b {}
예금주$:$n | 회비 $w $b {} 로 보내주세요 | 입금은 {} $b $n | 환불 계좌 $b {} $n입니다 | 계좌
알려드려요¶{} $b | $b¶{}¶$n | 선입금입니다 $b {} | 송금은 $b {}($n)로 | 참가비 $w ($b {} $n) | $c
회비 계좌$:$b {} | 스터디 보증금 $w → $b {} $n | 탄원 비용 모금$:$b {} (대표 $n) | 모금 계좌 {} $b |
관리비를 {} 이 계좌로 이체했는데 미납이래요 | 장기수선충당금 반환 $n $b {} | 이 계좌 사기입니다 $b
{} | 사기계좌 공유 {} ($b) | 계좌이체 할인! $b {} | 무통장입금 $b {} / $n | 취소 환불 요청. $b / {}
/ $n | 제 계좌는요 $b {}이에요 | 통장번호 {} $b | $b 통장 {} 으로 정산 부탁 | 공구 총대 계좌 $b {}
오늘까지 | 입금하실 곳$:$b, {}, $n | 부의금 $b {} 상주 $n | 회식비 엔빵 인당 $w, $b {} | 급여계좌
변경 $b {}
==email== 문의는 {} 로 보내주세요 | 지원서는 $d까지 {}로 제출 | 자료 필요하신 분 {} 메일 주세요 | {}
으로 견적서 부탁드립니다 | 연명 동참$:성함, 소속 적어 {} | 청원 대표 $n <{}> | 성명서 전문 문의 $n
{} | 제보 메일 {} | 목격 사진은 {} 으로 부탁드립니다 | 계정 {} 탈퇴 처리해 주세요 | 주문자 $n / {} /
결제금액 $w | 답변은 {} 으로 주세요 | 회신처$:{} | 세금계산서 {} 로 발행 부탁드립니다 | 영수증은
{}에 보내 주세요 | $c 가입신청 {} 총무 $n | 발제문은 {}로 전날까지 | 스터디장 메일 {} | 공유 권한
요청드려요 {} | $n({}) | 연락처$:{} 메일만 확인해요 | 관심 있으시면 메일 {} | 네고는 메일로 {} |
악보 pdf 필요하면 {} 남겨 드릴게요 | 사기꾼이 쓰던 메일 {} | 입주민 카페 매니저 {} 로 등업 신청 |
동대표 후보 등록 서류 {} | 관리사무소 메일이 {} 맞나요 | 기사님이 {}로 사진 보내라던데요 | 보낸사람
{} 이런 메일 받으신 분? | 원고 투고$:{} (마감 $d)
==handle== 카톡 아이디 {} 로 연락 주세요 | 카톡으로 주세요 아이디 {} | 톡 아이디 {} 편하게 주세요 |
카카오톡¶{}¶$n | ㅋㅌ {} | 오카방 말고 갠톡 아이디 {} | 인스타 {a} | 인스타 아이디 {}로 디엠 주세요
| 인스타그램$:{a} | insta {a} 에 사진 더 있어요 | {a} 디엠 주세요 | {a} 팔로우하고 댓글 남기면 추첨
| {a} 님이 올린 후기 보고 갔어요 | instagram.com/{} 참고하세요 | 인스타 {} 이 사람 사기꾼이에요 |
텔레그램 {a} | 텔레 {} | t.me/{} 로 말 걸어 주세요 | 디스코드 {t} | 디코 {t} 친추 주세요 | 디코$:{}
| 디스코드 아이디 {} 로 참가 신청 | 배틀태그 {t} | 롤 닉 {r} 같이 하실 분 | LINE ID {} | 트위터 {a}
| X(구 트위터) {a} 계정으로 문의 | 공론화 계정 {a} 입니다 | 당근 말고 카톡 {} 로 주세요 | 스레드 {a}
구경 오세요 | 위챗 {} | 유튜브 {a} 에 연습 영상 올렸어요 | 틱톡 {a} | 밴드 말고 카톡으로요, {}
입니다
==frames== $j$:{} | $j {} | $j {}입니다 | $j {} 이요 | $j¶{} | $j [{}] | $j = {} | $n / $j {} |
성함$:$n¶$j$:{} | 제 $j {} 맞나요? | $j({}) | $j {} 인데 오류가 나요 | $n님 $j {} | ($j: {}) | $j {}
확인 부탁드려요
==innocent== 주문번호 20260§1_-_______ 배송 언제 되나요 | 주문번호 20260§1___§____§ 취소 요청합니다
| 등기번호 §____-____-____ 반송됐다고 합니다 | 2025고합§__ 사건 탄원서 모읍니다 | 헌법재판소
201_헌마§__ 결정문 공유합니다 | 시행령 제14조의2, 별표 3 참고하세요 | 국민동의청원 §_,___명
돌파했습니다 | 민원 접수번호 1AA-260§-_______ 답변이 왔어요 | 고객센터 1588-____ 연결이 안 됩니다 |
카드사 1899-____ 분실신고 하세요 | iOS 17.§.1에서 로그인이 안 됩니다 | 공유기 192.168.0.§ 접속이 안
돼요 | IP 10.0.§.1__ 로 접속하면 관리자 페이지가 떠요 | 접속 IP 211.§_.1__.§_ 차단됐다고 나옵니다 |
동호회 리그 §승 §무 §패, 득실 +§ | 축구 §-1 승! 다음 경기는 $d | 볼링 에버 1§_, 하이 2__ 나왔어요 |
마라톤 기록 3:§_:__ 완주했습니다 | 갤럭시 모델명 SM-S9§_N 상태 A급 $w | 품번 DZ§___-1__ 새상품 $w |
LOT 2§0113-0§ 유통기한 2027.0§.1_ | ISBN 979-11-§___-___-_ 새 책 수준 | $p 상가 10§호 옆 계단에서
만나요 | 지번은 산§_-1번지 일대입니다 | 우편번호 0§___ 로 보내시면 됩니다 | 1§_-2§번지 재개발 구역
주민설명회 | M§10_ 버스가 또 안 왔어요 | 지하철 §호선 $t 이후 혼잡도 1§_% | 예방접종 §차 완료,
몸무게 §.§kg | 보험 계약 1§_건 중 §건만 지급됐대요 | $z 찾습니다. §살, §.§kg, $d 실종 | 동물등록번호
4101600§_______ 칩 있는 아이예요 | 분양가 §억 §,_00만원, 전세가율 7§% | 금리가 3.§_%에서 4.1_%로
올랐습니다 | 전용 84.9§㎡, 공급 112.§_㎡입니다 | 이슈 #§_§ 는 수정됐다고 합니다 | C# 스터디 §주차,
과제 #2 제출하세요 | #강아지찾아요 #$z #공유부탁 | #분당맛집 #2026년신상 #내돈내산 | #나눔 #무료
#선착순§명 | 용량 §00ml x 24개, 개당 §_0원꼴 | 모임비 $w 현장에서 걷습니다 | 입금액 §,___,000원
확인했습니다 | 관리비 계좌이체 수수료 §00원은 누가 내나요 | $k 10% 청구할인 $d까지 | 카드 무이자
2~6개월, §만원 이상 | 계좌 개설하면 §만원 준다는 이벤트 하셨나요 | $b 예금 금리 3.§%면 괜찮은가요 |
$b 지점이 $d 폐점한대요 | 입금자명만 맞으면 §시간 안에 확인됩니다 | 주민번호 뒷자리는 절대 적지
마세요 | 주민등록 인구 51,§__,___명이라고 하네요 | 주민 §__명이 서명했습니다 | 010으로 시작해도
스팸일 수 있어요 | 부재중 전화가 §_통 와 있었어요 | 전화 §번 했는데 연결이 안 됐습니다 | 연락처는
쪽지로 드릴게요 | 이메일 답장만 §주째 기다려요 | 메일함 용량 15GB 중 §.§GB 썼어요 | naver.com 메인에
떴던 그 기사예요 | 골뱅이 소면 2인분 §_,000원 맛집이에요 | 골뱅이무침 시켰는데 닷새 만에 왔어요 |
카톡방 인원 1§_명 넘어서 새로 팠어요 | 카톡 주시면 답장 늦어요, 댓글이 빨라요 | 카톡 PC버전 §.§.1
오류 나는 분? | 카카오톡 ID 공개는 하지 말아 주세요 | 인스타 팔로워 §,___명 넘으면 이벤트 | 인스타
DM 주지 마시고 채팅 주세요 | 인스타 릴스 조회수 §.§만 | 디스코드 nitro §개월권 $w | 디스코드에서
@everyone 남발하지 맙시다 | 텔레그램 10.§.1 업데이트하셨나요 | 라인 2호기 엘리베이터 점검 $d |
네이버 아이디 하나로 결제 다 되네요 | 네이버 pay 적립 §,§00원 누락 | 연필 12자루 @§00원, 노트 10권
@1,§00원 | 모임 @$p 카페, $t 시작 | 토익 §_0점 목표, LC 4§0 RC 3§5 | 정보처리기사 201_년 3회 기출
풀어요 | §주차 p.1§_~2_§ 까지 읽어 오세요 | Day §_: 3-1단원, 3-2단원 단어 §0개 | 참석 §_명, 불참
§명, 미정 2명 | 공일이라 관리소가 닫혔네요 | 삼일절에 이사 오는 집이 세 집이래요 | 2025-2026 시즌
회원 §_명 모집합니다 | 2026.0§.1_ ~ 2026.12.2_ 공사 예정 | 기간$:2026-0§-1_ ~ 12-2_ | 사업자등록번호
§__-8§-_____ 조회하니 폐업이래요 | 통신판매업 제201_-서울마포-0§__호 맞나요 | 정부24 문서확인번호
1§__-____-____-____ 는 기한이 지났대요 | 의안번호 21§____ 통과를 촉구합니다 | 국회 의안 제22§____호,
찬성 §__표 | 고시 제201_-§__호에 따라 철거합니다 | 전기요금 §__kWh 사용, 누진 3단계 | 수도 검침
§,___톤에서 9,9__톤 | 미세먼지 §_㎍/㎥, 초미세 §_㎍/㎥ | 혈압 1§_/8§, 혈당 1_§ 나왔습니다 | 비행기
KE§_1 편 지연, 게이트 2§ | KTX §__열차 1§호차 §A석 양도합니다 | 좌석 F구역 §열 1_번 정가 양도 | 로또
§, 1§, 2§, 3_, 40 나왔네요 | RTX 40§0 / i5-13§00 / 램 32GB $w | 자전거 700x2§C 타이어, 프레임 5§0 |
평점 4.§ / 5.0 | 총 §_,___원 나왔네요 | #이벤트 #당첨자 §명 | ver 1.0.§ | 송장번호 §___-____-____
조회가 안 돼요 | CJ 운송장 6__________§ 이틀째 옥천이에요 | 바코드 880§_________ 안 찍혀요 |
쿠폰번호 §___-____-____ 이미 썼대요 | 1577-____ 대기만 §_명이래요 | 대표번호 1544-____ 불친절해요 |
대법원 2018다2_____ 판결 참고 | 품목코드 A-10_-20§ 재입고 되나요 | 시리얼 R5CT§__ABCD 정품 맞아요 |
9§01-1번 정류장 이전 반대 | 실비 §개, 암보험 2개 정리할까요 | 특허 10-201_-00_____ 제품이래요 | 좌표
37.§____, 127.0____ 근처 | 노선 §30, 7§1, 3§00번 우회
==open== 안녕하세요. | 안녕하세요 $p 주민입니다. | §0_동 주민이에요. | 수고 많으십니다. |
도와주세요ㅠㅠ | [공지] | [긴급] | 회원 여러분 안녕하세요! | 급해서 글 올립니다. | 몇 번을 문의해도
답이 없네요. | 혹시 몰라 남깁니다. | 글 처음 써 보네요 ㅎㅎ | 다시 올려요. | 문의드립니다.
==close== 감사합니다. | 감사합니다^^ | 꼭 부탁드립니다. | 많은 관심 부탁드려요. | 빠른 답변
부탁드립니다 | ㅠㅠ | 수고하세요~ | 좋은 하루 되세요. | 답변 기다리겠습니다. | 확인 부탁드려요ㅎㅎ |
$n 드림 | 댓글도 괜찮아요.
==banks== 국민,국민은행,KB국민:§_____-04-______ §_____-01-______ §__-__-____-___ |
신한,신한은행:110-§__-______ 110-§__-______ §__-0_-______ | 우리,우리은행:1002-§__-______
1005-§__-______ §__-______-02-___ | 하나,하나은행:§__-910___-__§07 §__-89____-__§04 |
농협,NH농협,농협은행:302-____-____-§1 352-____-____-_3 301-0___-____-§1 §__-12-______ |
기업,기업은행,IBK:§__-______-01-0__ §__-______-02-___ | 카카오뱅크,카뱅:3333-0_-_______
3333-§_-_______ 7979-§_-_______ | 토스뱅크,토뱅:1000-____-____ 1001-____-____ |
케이뱅크:100-1__-______ | 새마을금고,MG새마을금고:9002-____-____-_ 9003-2___-____-_ |
우체국:§_____-02-______ | 신협:131-0__-______ 132-0__-______ | 수협:1010-____-____ |
SC제일:§__-20-______ | 부산은행:112-2___-____-0_ | 대구은행,iM뱅크:508-1_-______-_ |
경남은행:207-____-____-0_
==words== l=연락처, 전화, 휴대폰, 핸드폰, H.P, Tel, ☎, 전번, HP, 번호 | p=래미안 2차, 푸르지오,
자이, 행복마을, 한신아파트, 중앙동, 샛별마을 | t=오전 10시, 오후 3시, 19:30, 저녁 7시 | g=유모차,
에어프라이어, 아이패드, 책상, 전기자전거, 패딩, 모니터 | c=산악회, 독서모임, 배드민턴 동호회,
영어스터디, 조기축구회, 비대위, 부녀회 | z=말티즈, 고양이, 푸들, 진돗개, 앵무새, 시바견 |
k=신한카드, 삼성카드, 현대카드, 국민카드, 롯데카드, 비씨카드, 체크카드 | d=§월 1§일, §/2§, 11월 §일,
2026.0§.1_ | w=§만원, 1§만원, §5000원, §만 5천원 | phone=연락처, 전화번호, 휴대폰, 핸드폰 번호, H.P,
전번, HP, 폰번호 | resident=주민번호, 주민등록번호, 주민 번호, 주민번호, 주민등록번호, 민증번호 |
card=카드번호, 신용카드 번호, 결제카드, $k 번호, 카드 번호, $k | account=계좌번호, 계좌, 입금계좌,
환불계좌, $b, $b 계좌, 계좌번호 $b, $b 통장 | email=이메일, 메일, e-mail, 메일주소, E-mail, 이메일
주소, email | handle=카톡 아이디, 카톡, 카카오톡 ID, 인스타, 인스타 아이디, 텔레그램, 라인 아이디,
디스코드, 트위터, 네이버 아이디, 카톡id | G=민지, 서연, 지훈, 영숙, 현우, 수빈, 정호, 미경, 도윤,
은주, 성민, 하은, 태식, 순자, 예린, 동혁 | nicks=달콤한감자, 야근요정, 곰돌이, 밤비, Kaze, 초코우유,
무서운토끼, Nova, 은하수, Rex, 감귤 | logins=minji, sunny, coffee, bomi, happy, jun, haneul,
dalkong, runner, kkamang, nabi, bookworm, blue, moon, star, tkfkd, mong, tiger, jeju, river, luv,
gamja, hodu, kjh, lsy, parksh, yeon, mint, sora, bada, dubu, tori, hong | hosts=naver.com,
naver.com, naver.com, gmail.com, gmail.com, gmail.com, hanmail.net, daum.net, kakao.com |
oddhosts=nate.com, hotmail.com, outlook.com, yahoo.co.kr, icloud.com, haedal.ac.kr, hanjinbook.co.kr
| A=02, 02, 031, 032, 051, 053, 062, 042, 041, 043, 054, 055, 061, 063, 064 | B=1, 6, 7, 8, 9 | D=2,
3, 4, 5, 6, 7, 8, 9 | C=4___, 5§__, 9§__, 9§__, 94__, 35__, 62__ | S=김, 이, 박, 최, 정, 강, 조, 한
"""
_PARTS = re.split(r"==(\w+)==", _TEXT.replace("\n", " "))
_PAIRS = zip(_PARTS[1::2], _PARTS[2::2], strict=True)
TABLE = {n: [line.strip() for line in t.split("|")] for n, t in _PAIRS}
FILL = {k: v.split(",") for k, v in (line.replace(", ", ",").split("=") for line in TABLE["words"])}
FILL[":"] = [": ", ": ", ": ", " ", ":", ":", " : ", "\uff1a", "\n", " - ", " → ", ") "]
SHAPES = {
    "l": "A-D__-____ 02-D___-____ A-D__-____ A)D__-____ (A)D__-____ A.D__.____ A~D__~____",
    "v": "070-§___-____ 070-§___-____ 0507-1___-____ 0504-§___-____ 070§_______ 0505-§__-____",
    "i": "+82-10-D___-____ +82~10-D___-____ +8210D_______ +82~10~D___~____ +82)10-D___-____",
    "m": "010-D___-____ 010-D___-____ 010-D___-____ 010-D___-____ 010-D___-____ 010-D___-____ "
    "010D_______ 010D_______ 010D_______ 010D_______ 010~D___~____ 010~D___~____ 010.D___.____ "
    "010)D___-____ 010~D_______ 010-D_______ 010~-~D___~-~____ 010-D___-____ 01B-§__-____",
    "x": "37__-______-_____ 37__~______~_____ 37_____________ 34__-______-_____",
    "c": "C-____-____-____ C-____-____-____ C-____-____-____ C~____~____~____ C____________",
}
CROSSED = {"phone": 0.03, "resident": 0.3, "card": 0.25, "account": 0.04}
SPANS = {
    "phone": [(9, 11), (5, 7)],
    "resident": [(7, 13), (7, 13), (8, 13), (9, 13)],
    "card": [(6, 12), (8, 12), (4, 12), (12, 16)],
    "account": [(4, 6), (4, 7)],
}


def _luhn(text: str) -> bool:
    pairs = enumerate(int(c) for c in reversed(text) if c.isdigit())
    return sum(d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in pairs) % 10 == 0


class _Writer:
    """Draws the parts of one text from a random source; the bank stays the same in it."""

    def __init__(self, r: random.Random) -> None:
        self.r = r
        names, self.shapes = r.choice(TABLE["banks"][: r.choice((7, 99))]).split(":")
        self.bank = r.choice(names.split(","))

    def digits(self, text: str) -> str:
        text = re.sub("_", lambda _: str(self.r.randrange(10)), text)
        return re.sub("§", lambda _: str(self.r.randrange(1, 10)), text)

    def shape(self, shapes: str) -> str:
        """One of the shapes, its capital replaced by a prefix, its digits drawn."""
        shape = self.r.choice(shapes.split())
        shape = re.sub("[A-D]", lambda m: self.r.choice(FILL[m[0]]), shape)
        return self.digits(shape).replace("~", " ")

    def odd(self, text: str) -> str:
        """A number written in full width, with letters, said, spaced or with other marks."""
        way, zero = self.r.randrange(9), self.r.choice("Oo")
        if way == 0:
            return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
        if way < 3:
            return text.replace("0", zero).replace("1", "l" if way == 2 else "1", 2)
        if way == 3 and text[0] not in "+(":
            return " ".join(re.sub("[-~./ ]", "", text))
        if way == 4 and text[0] != "+":
            said = text.translate({48 + i: c for i, c in enumerate("공일이삼사오육칠팔구")})
            return said[:3] + text[3:] if text[:2] == "01" and zero == "o" else said
        marks = (" - ", " ", ".", "/", "\u2013", "_", "ㅡ", "~", "  ", "·", "--")
        return text.replace(" - ", "-").replace("-", self.r.choice(marks))

    def number(self, kind: str, sub: str) -> str:
        """A number of the kind, sometimes crossed out in part or written oddly."""
        r = self.r
        shapes = SHAPES.get(sub or r.choice("mmmmmmmmmmmmmmmllvi" if kind == "phone" else "c"), "")
        if kind == "resident":
            year = r.randrange(2012, 2026) if sub == "y" else r.randrange(1938, 2008)
            born = f"{year % 100:02}{r.randrange(1, 13):02}{r.randrange(1, 29):02}"
            sex = r.randrange(1, 3) + 2 * (year >= 2000) + 4 * (sub == "f")
            shapes = " ".join(f"{born}{gap}{sex}______" for gap in ("-", "-", "-", "-", "", "~-~"))
        text = self.shape(self.shapes if kind == "account" else shapes)
        while kind == "card" and not _luhn(text):
            text = self.shape(shapes)
        chance, share = r.random(), CROSSED[kind]
        if chance < share:
            first, last = r.choice(SPANS[kind])
            mark, places = r.choice("****XxO○●"), [i for i, c in enumerate(text) if c.isdigit()]
            return "".join(mark if i in places[first:last] else c for i, c in enumerate(text))
        if kind == "account" and chance > 0.8:
            return text.replace("-", "")
        return self.odd(text) if chance < share + 0.16 else text

    def login(self, joints: str) -> str:
        one, two = self.r.choice(FILL["logins"]), self.r.choice(FILL["logins"])
        text = self.r.choice((one, one, one, one + two, *(one + c + two for c in joints)))
        text += self.digits(self.r.choice(("§_", "§__", "____", "0§1_", "9§", "8§0§", "", "")))
        return text + self.digits("§__") if text.isalpha() or len(text) < 5 else text

    def email(self, kind: str, sub: str) -> str:
        """An address, one in four disguised."""
        r, login, chance = self.r, self.login("._-"), self.r.random()
        host = r.choice(FILL["hosts" if r.random() < 0.8 else "oddhosts"])
        if chance < 0.82:
            return login + ("@" if chance < 0.75 else r.choice(("\uff20", " @ ", "@ "))) + host
        at = r.choice(("골뱅이", " 골뱅이 ", "[at]", "(at)", " at ", "앳", " 앳 ", "(골뱅이)", "@"))
        if chance < 0.87:
            site = r.choice(("네이버", "지메일", "다음", "한메일", "네이트"))
            return login + at + site + r.choice((".com", "닷컴", " 닷컴", " 점 컴"))
        dot = r.choice((".", ".", "닷", " 닷 ", " dot ", "[dot]", "(dot)", " 점 "))
        return login + at + host.replace(".", dot)

    def handle(self, kind: str, sub: str) -> str:
        """A login; for sub t or r name#number, for sub a with @ in front."""
        if sub in ("t", "r"):
            tail = self.r.choice(("#KR1", "#kr1", "#____")) if sub == "r" else "#____"
            names = (self.login("_."), self.r.choice(FILL["nicks"]))
            return self.r.choice(names) + self.digits(tail)
        return "@" * (sub == "a") + self.login("_.")

    def fill(self, text: str) -> str:
        """The template with its $ words, digits and line breaks put in."""
        own = {"b": self.bank, "n": self.r.choice(FILL["S"]) + self.r.choice(FILL["G"])}
        text = re.sub(r"\$(.)", lambda m: own.get(m[1]) or self.r.choice(FILL[m[1]]), text)
        return self.digits(text).replace("¶", "\n")

    def around(self, end: str) -> tuple[str, str]:
        """What stands before and behind a line with that end, each often empty."""
        gap = self.r.choice((" ", " ", "\n", "  ", "\n\n"))
        front = self.r.choice(TABLE["open"]) + gap if self.r.random() < 0.5 else ""
        stop = "" if end.endswith((".", "?", "!")) else self.r.choice((".", ".", "", "~", "!!"))
        return front, stop + gap + self.r.choice(TABLE["close"]) if self.r.random() < 0.45 else ""


def positives(seed: int, count: int) -> Iterator[tuple[str, str, str, str]]:
    """Kind, before, piece, behind; the text is before + piece + behind, the piece must vanish."""
    r = random.Random(seed)
    for number in range(count):
        kind, writer = KINDS[number % len(KINDS)], _Writer(r)
        line = r.choice(TABLE[kind] + TABLE["frames"]).replace("$j", r.choice(FILL[kind]))
        before, sub, behind = re.split(r"\{(\w?)\}", line)
        front, back = writer.around(behind)
        maker = {"email": writer.email, "handle": writer.handle}.get(kind, writer.number)
        yield kind, writer.fill(front + before), maker(kind, sub), writer.fill(behind + back)


def negatives(seed: int, count: int) -> Iterator[str]:
    """Innocent texts with look-alikes of personal data, nothing in them to mask."""
    r = random.Random(seed)
    for _ in range(count):
        writer, line = _Writer(r), r.choice(TABLE["innocent"])
        front, back = writer.around(line)
        yield writer.fill(front + line + back)
