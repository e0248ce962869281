"""The seventh style: comments, live chats, cafe posts, replies and bios; all data is random.

Written by somebody who had seen neither the rules nor the other sets. A line is a template: § is
the piece that must vanish, {…} a slot; the parts between |= are the kinds, the last innocent.
"""

import random
import re
import unicodedata
from collections.abc import Iterator


def _cut(text: str, at: str) -> list[str]:
    return text.split(at)


KINDS = ("phone", "resident", "card", "account", "email", "handle")
_TEMPLATES = """
제 번호 §{예} 연락주세요|§ 문자주세요|사기꾼 번호 박제합니다 §|이 번호 조심하세요 § 보이스피싱입니다|공구 문의는 §|나눔합니다 가져가실 분 § 문자만|연락처: §
{C}역 직거래 가능 / §|연락처) § {N}|H.P § {N}|HP: § 언제든 환영|📞§ 상담환영|휴대폰 §|번호 땄는데 §{라}고 찍어줌 ㅋㅋ|형 나 심심해 전화좀 §
방장님 저 당첨자 {N}이고 번호는 §{예}|이벤트 참여합니다! {N} / §|댓글이벤트 참여 {N}, §, 아아 한잔이요|§{로} 전화 ㄱㄱ|카톡 안되면 §{로} 문자
여기로 전화해보세요 § 친절하게 알려주심|강아지 찾습니다 {C} 근처 보시면 § 꼭 연락 부탁드려요|폰 주우신 분 §{로} 연락주시면 사례합니다|폰번 § 저장해
방금 §에서 택배 문자 왔는데 스미싱이죠?|§ 이 번호로 자꾸 전화옴 누군지 아시는 분|전남친 번호 풉니다 §|번호 바뀌었어요 § 저장해주세요|☎️ § {N} 팀장
카풀 구해요 {C}→{C} 오전 7시 § 문자주세요|비밀댓글이 안되네요 제 폰은 §{예}|{C} 투룸 양도합니다. 보증금 500/45, §|2호차 총무 {N} (§)
과외합니다 {C} 수학 시간당 3만 §|대리구매 가능 §{로} 톡주세요|저도 당했어요 {N} § 이 사람 맞죠?|채팅창에 누가 내 번호 § 올림 미친
{Y}년 {M}월 모임 참석 {N} §|=
예약문의 § (월요일 휴무)|{S} {C}점 전화 §|{C}동 골목 안쪽이고 전화는 §|TEL. §|사장님이 알려주신 가게번호 §|[{S}부동산] ☎ §|{S}공방 T.§
사무실 §{로} 하시면 {N} 실장이 받아요|출장수리 {S}설비 § 24시|미용실 예약은 § 혹은 디엠|병원은 {C}역 {1}번출구, 전화 §|{S}익스프레스 이사견적 § 무료
꽃집 {S} 🌷 {C} / § / 당일배송|민박 예약 § {N}네|영상 속 식당 {S} 전화번호 §|=
주민번호 §|주민등록번호 : §|제 주민번호가 §인데 조회가 안돼요|{N} § 이 사람 신상 아시는 분?|{N} 주민번호 § 이거 유출된 거 맞음?|외국인 등록번호: §
민증에 § 다 보여요 얼른 가리세요|주민번호 §{라}고 떡하니 나오네|{k}분 {2x}초에 주민번호 § 나오는데 모자이크 안하나|사기꾼 {N} (§) {C} 거주 조심|민번 §
본인인증에 §{을} 넣었더니 오류남|주민 § {N} 입니다 등업 부탁드려요|외국인등록번호 §{로} 가입이 안되네요|배우자 외등번호 §인데 보험 되나요?|주민: §
{N}/§/{C} 여행자보험 신청합니다|주민등록증 번호 §|저희 부모님 주번 §인데 지원금 대상인가요|ㅋㅋㅋ 얘 민번 § 다 털렸네|주민번호 뒷자리까지 § 공개됨
[양도] {N} § 입장시 신분증 확인|판결문에 피고 {N} (§) 실명 그대로 있네|신분증번호 § 제출했습니다|아이 주민번호 §인데 어린이집 대기중이에요|아들 민번은 §
{N} 님 주번 § 확인했습니다|주민번호 바꾸고 싶다 §{이} 사방에 퍼졌음|댓글에 §{을} 왜 적어요 주민번호잖아요 지우세요|여권 신청하는데 주민번호 §{로} 쓰면 되죠?
형님 주민번호 불러드릴게요 § {N}|대포폰 명의자 {N} §|실명확인 §{로} 했는데 불일치라고 뜸|주민등록번호 § 도용당했어요|국적 베트남 외국인등록번호 §
봉사시간 등록 {N} § 부탁드립니다|등본 떼니까 §{라}고 틀리게 나와요|캡쳐본에 {N} § 보이는데 괜찮아요?|신분증 사진 올리면서 § 안가리는 클라스|RRN § {N}
주민 앞뒤 다 § 적으면 됨?|라이브 중에 스트리머 주민번호 § 노출됨|화면에 § 민증번호 떴다 ㄷㄷ|세대주 {N}(§) 세대원 2명|연말정산 부양가족 {N} § 추가하려는데
제 번호 말고 주민번호요? §{예}|=
카드번호 §|제 카드 §인데 해외결제 됐대요|카드번호: § 유효기간 {m}/{e}|{K} § 이걸로 결제해줘|{K}카드 §|엄마카드 § 몰래 씀 ㅋㅋ|카드 § cvc {3}
카드번호가 § 맞는데 왜 승인거절?|{K} 체크카드 § 분실했어요|방송에 카드번호 § 다 나왔어요 정지하세요|{k}분 {2x}초 카드번호 § 노출|법카 § 쓰세요
호텔에서 카드번호 남기래서 § 적음|카드 앞면 사진 올리면 어떡해요 § 다 보임|누가 내 카드 §{로} 아이템 샀냐|결제카드 §{로} 변경 부탁드려요|제 신용카드 §
이 카드번호 § 도용 카드니까 받지 마세요|유출 목록에 § 제 {K}카드 있네요|정기결제 카드 § 해지해주세요|자동이체 {K}카드 § 등록했는데 안빠져요|카드 번호 불러줄게 §
아빠 카드 §{예} 현질하세요|{K}카드 §, 명의 {N}|신용카드번호 § ({N})|구글플레이 결제카드 §{로} 돼있는데 안바뀜|피싱사이트에 § 카드번호 입력해버림 어쩌죠
{C}역에서 {K}카드 주웠어요 § {N}님 찾아가세요|선결제 카드번호 § 이체 아님|카드번호 열여섯자리 §{예}|기프트카드 말고 신용카드 §{로} 긁었어요|내 카카드... §
{K}카드 말고 § 이 카드로 결제할게요|여행사에 카드번호 § 문자로 보냄|트수들아 카드번호 §{을} 왜 쳐ㅋㅋ|지금 채팅에 카드번호 § 친 사람 빨리 삭제|Card No. §
카드번호§{로} 공구 결제 부탁|화면에 {K}카드 §{이} 그대로 찍힘|결제 오류: 카드 § 한도초과 뜸|{N} 카드 § 일시불|{K}페이에 카드 § 등록이 안됨
해외직구 카드 § 두번 긁혔는데 취소되나요|card : § exp {m}/{e}|☑ 카드결제 § 3개월|=
{B} § {N}|{B} §|계좌번호 {B} §|계좌: {B} § ({N})|후원계좌 {B} § 예금주 {N}|{B} §{로} 입금해주세요|입금계좌 § {B} {N}
{B} § {N} 앞으로 {p}원 보내주시면 됩니다|사기계좌 {B} § {N} 조심하세요|여기로 보내줘 {B} §|형 {B} §{로} 만원만|§ {B} {N}|§ {B}요
공구 입금 {B} § {N} / 입금 후 댓글|계좌후원 {B} § 투네 수수료 아까움|🐶보호소 후원🐶 {B} § ({S}쉼터)|부의금 {B} § {N}|계좌번호 §{예} {B}
모임통장 {B} § 회비 {k}만원|총무 {N} {B} § 회비 부탁드려요|축의금은 {B} § {N}|아까 그 계좌 말고 {B} § 입니다 입금요|계좌 §인데 {B} 맞아요
송금은 {B} §|이 계좌로 돈 보내지 마세요 § {B} {N}|제 계좌 {B} §, 택배비 포함 {p}원|{p}원 {B} § {N} 입금확인되면 발송|택포 {p}원 {B} §
계좌 불러드릴게요 {B} §|환불계좌 {B} §/{N}|환불은 {B} § {N} 이쪽으로요|먹튀범 계좌 § ({B})|{B} § 여기 입금한 분들 모이세요|기부계좌→{B} §
떼인돈 {B} §{로} 갚아라 ㅋㅋ|수술비 모금합니다 {B} § 예금주 {N}|돈쭐내러 갑시다 {B} § {S} 사장님 계좌|팬클럽 총공 모금 {B} § ({N})
스트리머님 계좌 § 이거 맞죠?|이 계좌로 입금했는데 연락두절 §|§{로} 송금했는데 잘못 보낸듯 ㅠ|내 계좌 § 누가 10원만 보내봐|{B} 계좌로 보냈어요 §
입금 § {B} 오늘까지만|알바비 받을 계좌 {B} § {N}입니다|생일선물 대신 {B} § 🙏|BIO: 굶는중 {B} § 밥값 후원|=
§|문의 §|협업문의 §|📩 §|✉️ § / 디엠 X|비즈니스 문의: §|business §|contact. §|e-mail: §|메일 주세요 §|§{로} 메일 보내주세요
자료 보내주실 분 §|저도 파일 부탁드려요 §|§ 저도 부탁드립니다!!|이메일 §인데 저도 보내주실 수 있나요|메일주소는 §{예}|제보는 §|{N} 기자 §|광고/협찬 📧 §
기사 쓴 {N} 기자 메일 § 항의 ㄱ|당첨자 메일 § {N}|이력서는 § {N} 앞으로|§ 여기로 보냈는데 답장이 없네요|피싱메일 발신자 §{예} 조심|멜 §|이멜 적어요 §
§ 이 메일로 온 거 열지 마세요|{S} 대표메일 §|공연 섭외 §, {N} 실장|일러스트 커미션 → §|구독취소 안되면 §{로} 문의하래요|인강 공유 가능하신 분 § 꼭이요
설문 참여했어요! §|운영자님 가입메일 §인데 등업 안돼요|구글 계정 §{이} 해킹당했어요|계정 § 비번 까먹음|페이팔 § 로 후원받음|유튜브 채널 삭제 문의 § 답변옴
[{Y}년 {M}월 모집] 지원서 → §|악플 캡쳐 제보 §|소속사 PDF 계정 §{로} 다 보냄|스트리머님 팬메일 § 맞나요?|출강문의 {N} §|{C} 스냅 촬영 ✦ §
논문 pdf § 부탁드려도 될까요|체험단 신청 {N} / § / 블로그 이웃 {k}00명|=
{P} §|{P} : §|{P} § 추가해줘|{P} §{로} 연락주세요|{P} 아이디 §|{P}아이디 §{예}|{P} ID §|제 {P} §{예} 맞팔해요|{P} 친추 §
{P} §{로} 디엠주세요|내 {P} § 심심한 사람|문의는 {P} §|상담 {P} § 24시간|{P} 계정은 § 이거 하나뿐 나머지 사칭|{P} § 사칭이니까 신고해주세요
{P}❤️ § / {k}살|사기꾼 {P} § 조심|얘 {P} §{예} 다 공개돼있음|네이버 아이디 § 등업 부탁드립니다|네이버아이디: §|닉 {N} 네이버 id §
가입 아이디 § 인데 로그인이 안돼요|{P} 계정 § 팔로우 부탁|{P}에서 § 검색하세요|댓글 말고 {P} § ㄱㄱ|영상 출처 {P} §|헤어모델 {P} §
{P} 본계 § 부계 없음|공구 오픈 알림 {P} §|투자방 {P} § 이거 다 사기임|{C} 네일 ✦ 예약 {P} §|{S} 공식 말고 {P} § {N} 개인계정|=
§ 님 그거 아님|§ 이거 봐봐ㅋㅋㅋ|§ 너 아니냐|ㅋㅋㅋ § 봤냐|📷 §|photo by §|with §|§ 말이 맞지 {k}년 전 얘긴데|부계 §|사진 §
§ 오빠 저도 한마디만|답글: § 그건 좀 아닌 듯|협찬 § 감사합니다|=
듀오 구함 §|롤 닉 §|배틀태그 §{예} 친추주세요|디코 §|디스코드 § 친추 ㄱㄱ|§ 친추좀|§ 이 사람 핵임 신고|발로 {k}인큐 구함 §|옵치 경쟁 같이하실 분 §
방금 판 § 트롤|디코 태그 §{로} 오세요|=
instagram.com/§|https://www.instagram.com/§/|t.me/§|텔레 t.me/§ 로 문의|x.com/§|twitter.com/§ 여기
blog.naver.com/§ 놀러오세요|https://www.youtube.com/@§|twitch.tv/§ 저도 방송해요|facebook.com/§|=
{Y}-{m}-{d} 방송분 다시보기 없나요|{Y}.{m}.{d} 기사인데 아직도 그대로네|24{m}{d} 음방 직캠 레전드|{Y}{m}{d} 업로드 영상이 더 낫다
{Y}년 {M}월 {D}일 {H}시에 재방송함|{k}:{2x} 여기서부터 개웃김|10:{2x} ~ 18:{2x} 사이에 온다더니|가격 {p}원 실화냐|{1}대0으로 이겼다 가자
{p}원에서 {p}원으로 올랐네|조회수 {1},{3x},{3x} ㄷㄷ|{Y}고합{3} 판결문 보세요|{Y}가단{6} 사건 결과 나옴?|{Y}다{6} 대법원 판례 있음
형법 제3{1}{1}조 제{1}항 위반임|정보통신망법 제44조의7제1항 보고 와라|법률 제1{4x}호 개정됐잖아|주문번호 {Y}{m}{d}-{7x} 언제 오나요
주문번호 {Y}{m}{d}{8x} 배송지연|운송장 {4}-{4x}-{4x} 조회가 안돼요|CJ대한통운 {12} 아직 옥천 ㅋㅋㅋ|우체국 등기번호 {13} 어디까지 왔나
ver {1}.{1}.{2} 업뎃하고 튕김|안드로이드 {1}.{1}.{1}버전 지원 종료|카톡 PC버전 {1}.{1}.{1}.{4} 깔았더니 렉|node@2{1} 설치하세요
react@1{1}.{1}.{1} 쓰니까 됨|iOS 1{1}.{1}.{1} 버그|오늘 {1}-1{1} 개털림|25-2{1} 23-25 25-1{1} 세트스코어 2:1
4타수 3안타 {1}타점 미쳤다|타율 0.3{1}{1} 이면 잘하는 거임|국민은행 대표번호 1599-9999 거세요|1588-{4} 상담원 연결 안됨|국번없이 120 다산콜
{K}카드 고객센터 1544-{4}|1577-{4} 여기 광고음악 중독|1600-{4} 대출권유 전화 또 옴|1661-{4}로 전화하니까 ARS만|118로 전화해서 상담받으세요
1345 외국인종합안내센터|RTX {1}060 Ti 사야하나|갤럭시 SM-S9{1}{1}N 쓰는 사람|모델명 NT{3}XBE-K{2}A 어때요|아이폰 1{1} 프로 256기가
LG 그램 17Z90{1}-GA{2}K|부품번호 {5}-{2}{3} 호환됨?|#먹방 #{Y} #일상|#오늘의집{k} 태그 보고 왔어요|이슈 #{4} 참고|PR #{3} 머지됨
공유기 192.168.0.{2} 접속 안됨|ㅇㅇ({i}.{i}) 너 아까 걔지|8.8.8.8로 DNS 바꿔봐|서버 IP {i}.{i}.{2}.{i} 차단됨|070은 걍 안받음
{Y}년부터 쭉 팬입니다|지지율 {2}.{1}% 나왔네|전년대비 {1}.{2x}% 증가|{C} {S}빌딩 {k}층 {3}호 맞죠|세종대로 {3} 건물 앞에 있음
{C}로{k}길 {2}-{1}|010으로 시작하는 번호도 스팸 많음|02로 시작하길래 받았더니 여론조사|계좌번호 알려달라고 하면 사기|계좌 {k}개 만들어도 됨?
입금 {p}원 했는데 확인좀|{p}원 송금 완료했습니다|{Y}.{m}.{d} 입금했어요 확인부탁|카드값 {p}원 실화냐 ㅠ|주민번호 뒷자리 왜 물어봄?|카톡 {k}일째 안읽씹
트위터 X로 바뀐 지 {1}년|디코 서버 {3}명 돌파|인스타 릴스 {3}만뷰|카카오톡 선물하기 {p}원 쿠폰|골뱅이소면 1{1},000원이면 싸다|금요일 7시 @ {C} 정모
을지로 골뱅이 골목 {k}호집|naver.com 접속 안됨?|이메일 인증이 자꾸 실패해요|로또 {1}, 1{1}, 2{1}, 30, 34, 41 찍었다|특허 제10-{7x}호
1{3}회 로또 1등 {k}명|코스피 2,{3x}.{2x} 마감|환율 1,{3x}.{1}원|삼성전자(005930) {2},{1}00원|바코드 880{10x} 찍으면 나옴
비트코인 1{1}{1},{3x},{3x}원 찍음|ISBN 979-11-{4x}-{3x}-{1}|사업자등록번호 {3}-{2}-{5x}|통신판매업신고 제{Y}-서울{C}-{5x}호
법인등록번호 110111-{7x}|쿠폰 ABCD-{4}-EFGH|특허출원 10-{Y}-{7x}|좌표 37.{4}, 127.{4}|KTX {3}열차 {k}호차 {k}A
북위 3{1}도{1}분에서 찍은 오로라래|항공편 KE{3} {H}:{2x} 출발|OZ{3}편 {k}시간 지연|구독자 {k}만 {4}명 축하|{3}일 {H}시간 {k}분 남음
좋아요 {1},{3x}개 댓글 {3}개|해상도 1920x1080 60fps|혈압 1{1}{1}/8{1} 괜찮나요|청원번호 {6} 동의해주세요|의안번호 22{5x} 반대
관리번호 {Y}-{4x} 민원 접수됨|접수번호 {Y}-{7x} 확인부탁|국민신문고 1AA-{e}{m}-{7x}|수험번호 {8} 합격기원|@Override 빼먹어서 에러
@media (max-width: {3}px) 이거 추가|0x{4} 에러 뜨는 분|에러코드 {3}-{5}|오일팔 기념식 {H}시|우리 {1}:0으로 졌어 ㅠ
신한 6{1}-7{1} 우리은행 여자농구|농협 쌀 {k}kg {p}원|{Y}학년도 {1}월 모의고사 {2}번|1~{k}회 몰아보기|S{1}E{2x} 보는 중
지원금 {1}00,000원 신청 {m}.{d}까지|카톡 친구 {3}명 정리함|우리은행 대출금리 {1}.{2x}%|카뱅 26주적금 {k}주차 {p}원|계좌이체 수수료 500원 아깝네
"""  # noqa: E501 (a Hangul letter counts as two columns)
MOBILE, OFFICE, RESIDENT, CARD, ACCOUNT, EMAIL, LABEL, MENTION, TAG, LINK, NEGATIVE = (
    re.split(r"[|\n]", part.strip()) for part in _TEMPLATES.split("|=\n")
)
NAMES = "김이박최정강조윤장임한오서신권황안송", "민서지우현하은도윤예린수빈태영", "호진아연준희경"
ROMAN = _cut("min ji hoon seo yeon jun woo ha eun bin young su hye jin kyu tae hyun do gks wl", " ")
WORDS = _cut("kkomi bori choco mandu latte cat mom daddy log daily moon star mint gamja love", " ")
NICKS = _cut("달빛 감자 새벽 토끼 라면 왕자 번개 고등어 초코 호랑이 구름 만두 도사 곰돌이", " ")
DOMAINS = "naver.com " * 21 + "gmail.com " * 13 + "hanmail.net " * 5 + "daum.net nate.com " * 2
DOMAINS += "kakao.com kakao.com outlook.com icloud.com own.co.kr own.kr own.com"
HOSTS = {"naver": "네이버", "gmail": "지메일", "hanmail": "한메일", "daum": "다음"}
SLOTS = {
    "C": "강남 홍대 수원 부천 일산 대전 광주 부산 해운대 전주 천안 청주 울산 잠실 신림 평택",
    "S": "소담 한빛 다온 미소 푸른 행복 대성 우주 달콤 늘봄 해솔 온누리",
    "K": "국민 신한 삼성 현대 롯데 하나 우리 농협 비씨 카카오",
    "P": "카톡 카톡 카톡 인스타 인스타 인스타 카카오톡 텔레그램 텔레그램 텔레 라인 디스코드 디코 "
    "트위터 인스타그램 틱톡 스냅챗 위챗 insta IG kakao TG ㅋㅌ",
}
BANKS = _cut(  # the commoner ones in front
    "국민 국민은행 KB국민 KB:6-2-6|카뱅 카뱅 카카오뱅크 카카오:3333.2-7|농협 NH농협:302.4-4-2|"
    "신한 신한 신한은행:110.3-6|우리 우리은행 우리은행:1002.3-6|토스 토스뱅크 토뱅:1000.4-4|"
    "하나 하나은행:3-6-5|농협 농협은행:356.4-4-2|기업 기업은행 IBK:3-6-2-3|새마을금고:9003.4-4-1|"
    "카뱅 카카오뱅크:7979.2-7|케이뱅크 케뱅:100.3-6|우체국:6-2-6|신협:132.3-6|농협:3-2-6|"
    "SC제일 제일은행:3-2-6|부산은행:112.4-4-2|대구은행 iM뱅크:508.2-6-1|광주은행:3-3-6|수협:4-4-4",
    "|",
)
BEFORE = _cut("ㄹㅇ |님들 |저기요 |아 |헐 |ㅋㅋㅋ |안녕하세요~ |🔥 |(수정) |와 |급)|ㅎㅇ ", "|")
AFTER = _cut(" ㅋㅋ|ㅋㅋㅋㅋ| ㅠㅠ| ㅎㅎ|!!|~| ^^| 🙏|..| ㄷㄷ| 👍|!|~!| ㅇㅇ|;;| 😂😂", "|")
DASHES = "\u2013\u2014\u2013\u2014\u2010\u2011\u2212\uff0d\u30fc\u3161~_/\u00b7,"
SEPS = {"phone": (48, 24, 8, 4), "resident": (66, 12, 4, 1), "card": (46, 20, 22, 2)}
JOSA = {"로": "으로 로", "이": "이 가", "을": "을 를", "예": "이에요 예요", "라": "이라 라"}
SPANS = {"k": "2 30 d", "Y": "2016 2025 d", "M": "1 12 d", "m": "1 12 02d", "D": "1 28 d"}
SPANS |= {"d": "1 28 02d", "H": "9 22 d", "e": "22 29 d", "i": "99 223 d"}
SPANS |= {"2x": "0 59 02d", "p": "9 3000 ,"}


class _Writer:
    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.pick = self.r.choice

    def digits(self, count: int, first: str = "0123456789") -> str:
        return self.pick(first) + "".join(self.r.choices("0123456789", k=count - 1))

    def slot(self, key: str) -> str:
        if key[0].isdigit() and key != "2x":  # {4}: four digits, {4x}: a 0 may be in front
            return self.digits(int(key.rstrip("x")), "123456789" + "0" * ("x" in key))
        if key in SLOTS:
            return self.pick(SLOTS[key].split())
        if key == "N":
            return "".join(self.pick(part) for part in NAMES)
        low, high, form = SPANS[key].split()
        return format(self.r.randint(int(low), int(high)) * (100 if key == "p" else 1), form)

    def fill(self, text: str, bank: str = "") -> str:
        return re.sub(r"\{([A-z0-9]+)\}", lambda m: self.slot(m[1]), text.replace("{B}", bank))

    def odd(self, parts: list[str], spoken: int) -> str:
        plain, whole = self.pick(["-", "-", "", " "]).join(parts), "".join(parts)
        wide = {0x30 + n: 0xFF10 + n for n in range(10)} | {0x2D: 0xFF0D}
        letters = str.maketrans({"0": self.pick("OOooㅇ○"), "1": self.pick("111lI")})
        spot = len(plain) if self.r.random() < 0.6 else len(parts[0])
        lettered = plain[:spot].translate(letters) + plain[spot:]
        said = str.maketrans("0123456789", self.pick("공공영") + "일이삼사오육칠팔구")
        mixed = "".join(c.translate(said) if self.r.random() < 0.4 else c for c in plain)
        gaps = ["", " ", "-", "-", "에 "] if spoken > 9 else ["", " ", "-"]
        made = [self.pick(DASHES).join(parts), plain.translate(wide), " ".join(whole), mixed]
        made += [self.pick([" - ", "- ", " -", ". ", "--", "  "]).join(parts)]
        made += [lettered if lettered != plain else plain.replace("1", "l", 1)]
        keycaps = re.sub(r"(\d)", "\\1\ufe0f\u20e3", whole)
        made += [self.pick(gaps).join(parts).translate(said), keycaps]
        return self.r.choices(made, (36, 9, 5, spoken // 2, 14, 12, spoken, 3))[0]

    def join(self, kind: str, parts: list[str]) -> str:
        weights = SEPS.get(kind, (46, 33, 5, 1))
        sep = self.r.choices(["-", "", " ", ".", "odd"], [*weights, 100 - sum(weights)])[0]
        if sep == "odd" and "".join(parts).isdigit():
            return self.odd(parts, 18 if kind == "phone" else 7)
        return ("-" if sep == "odd" else sep).join(parts)

    def phone(self, line: str) -> str:
        chance, areas = self.r.random(), "02 02 02 02 031 031 032 051 053 042 062 064 033 041 055"
        head = "010" if self.r.random() < 0.95 else self.pick(["011", "016", "017", "019"])
        if line in OFFICE:
            net = "070 070 0507 0507 0507 0502 0504 0503"
            head = self.pick((areas if self.r.random() < 0.7 else net).split())
        short = head[:3] not in ("010", "070", "050") and self.r.random() < 0.7
        parts = [head, self.digits(3 if short else 4, "23456789"), self.digits(4)]
        if chance < 0.04 and len(head) < 4:
            lead = self.pick(["+82 ", "+82-", "+82", "82-", "+82)", "(+82)"])
            return lead + head[1:] + self.pick("-- ").join(["", *parts[1:]])
        if head in areas and chance < 0.16:
            return self.pick(["({}){}-{}", "{}){}-{}", "({}) {}-{}", "{}) {}-{}"]).format(*parts)
        parts[2] = parts[2][:3] + self.pick("*Xx") if chance > 0.985 else parts[2]
        return self.join("phone", parts)

    def resident(self, line: str) -> str:
        child = re.search("아이|아들", line)
        year, foreign = self.r.randint(*((108, 124) if child else (45, 108))), "외" in line
        sex = (1 if year < 100 else 3) + 4 * foreign + self.r.randint(0, 1)
        behind = f"{sex}{self.digits(6)}"
        if self.r.random() < 0.16:
            kept = self.pick([1, 1, 1, 2, 4])
            behind = behind[:kept] + self.pick("***Xx●") * (7 - kept)
        return self.join("resident", [f"{year % 100:02d}{self.fill('{m}{d}')}", behind])

    def card(self, _: str) -> str:
        size = 15 if self.r.random() < 0.06 else 16
        head = self.pick(["34", "37"] if size == 15 else ["4", "4", "5", "5", "9", "35", "62"])
        body = head + self.digits(size - 1 - len(head))
        doubled = [int(c) * (2 - n % 2) for n, c in enumerate(reversed(body))]
        check = str(-sum(n // 10 + n % 10 for n in doubled) % 10)
        body += check if self.r.random() < 0.7 else self.digits(1)
        if size == 15:
            return self.join("card", [body[:4], body[4:10], body[10:]])
        if self.r.random() < 0.12:
            low, high = self.pick([(8, 12), (4, 12), (12, 16), (4, 8), (6, 12)])
            body = body[:low] + self.pick("***Xx") * (high - low) + body[high:]
        return self.join("card", [body[n : n + 4] for n in range(0, 16, 4)])

    def account(self) -> tuple[str, str]:
        weights = [max(1, 10 - n) for n in range(len(BANKS))]
        names, _, shape = self.r.choices(BANKS, weights)[0].partition(":")
        head, dot, sizes = shape.rpartition(".")
        parts = [head] * bool(dot) + [self.digits(int(n)) for n in sizes.split("-")]
        return self.pick(names.split()), self.join("account", parts)

    def login(self, mail: bool = False) -> str:
        name, word = "".join(self.r.sample(ROMAN, 2)), self.pick(WORDS)
        tail = self.pick(["", "", "9", "0"]) + self.digits(self.pick([1, 2, 3]))
        forms = [name + tail, name + tail, word + tail, f"{name}_{tail}", f"{word}_{name}"]
        forms += [f"{name}.{word}", f"{name}{word}{tail[:2]}"]
        more = [f"_{name}_", f"{name}_{word}_", f"{name[0]}._.{word}", f"{name}__{tail}"]
        return self.pick(forms if mail else forms + more)

    def email(self, _: str) -> str:
        user, domain = self.login(mail=True), self.pick(DOMAINS.split())
        domain = domain.replace("own", self.pick(WORDS) + self.pick(ROMAN))
        host, _, top = domain.partition(".")
        at = self.pick(["@", "[at]", " at ", "골뱅이", " 골뱅이 "])
        odd = self.pick([" @ ", "@ ", " @", "\uff20", "(at)", "(a)", "[@]", "(골뱅이)", "앳"])
        dot = self.pick(["[dot]", "(dot)", " dot ", "닷", "점", " . "])
        made = [user + at + domain, user + odd + domain, user + at + domain.replace(".", dot)]
        if host in HOSTS:
            end = self.pick([f".{top}", f" 점 {top}", {"com": "닷컴", "net": "닷넷"}[top]])
            made += [user + at + HOSTS[host] + end, f"{user}@{host}"]
        return self.pick(made) if self.r.random() < 0.26 else f"{user}@{domain}"

    def handle(self) -> tuple[str, str]:
        group = self.r.choices([LABEL, MENTION, TAG, LINK], (60, 20, 12, 8))[0]
        line, login = self.pick(group), self.login()
        nick = "".join(self.r.sample(NICKS, 2))
        if group is LABEL:
            login = login.replace("_", "언더바") if self.r.random() < 0.02 else login
            return line, "@" * ("{P}" in line and self.r.random() < 0.2) + login
        if group is MENTION:
            mixed = "".join(self.r.choices("abcdefghkmxyz23456789", k=9))
            nick += self.pick(["", f"-{mixed[:3]}", self.digits(2)])
            return line, "@" + self.r.choices([login, f"user-{mixed}", nick], (75, 12, 13))[0]
        if group is TAG:
            mark = "KR1" if "롤" in line else self.digits(self.pick([4, 4, 5]), "123456789")
            return line, f"{self.pick([nick, nick[:2] + self.digits(2), login.strip('_')])}#{mark}"
        return line, login


def _josa(piece: str, behind: str) -> str:
    last = [c for c in unicodedata.normalize("NFKC", piece).lower() if c.isalnum()][-1]
    tail = 8 if last in "178lr" else 4 * (last in "036mntkpbg")
    tail = (ord(last) - 0xAC00) % 28 if "가" <= last <= "힣" else tail
    for key, forms in JOSA.items():
        bare = tail == 0 or (tail == 8 and key == "로")
        behind = behind.replace(f"{{{key}}}", forms.split()[bare])
    return behind


def positives(seed: int, count: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield (kind, before, piece, behind); only the piece must vanish."""
    w = _Writer(seed)
    for index in range(count):
        kind, bank = KINDS[index % len(KINDS)], ""
        if kind == "handle":
            line, piece = w.handle()
        elif kind == "account":
            line, (bank, piece) = w.pick(ACCOUNT), w.account()
        else:
            lines = {"phone": MOBILE + OFFICE, "card": CARD, "email": EMAIL, "resident": RESIDENT}
            line = w.pick(lines[kind])
            piece = getattr(w, kind)(line)
        before, behind = w.fill(line, bank).split("§")
        behind = _josa(piece, behind)
        if re.search("[가-힣:] $", before) and not re.match("[가-힣]", piece):
            before = before[:-1] if w.r.random() < 0.1 else before
        if re.match(" [가-힣]{2}", behind) and not re.search("[가-힣]$", piece):
            behind = behind[1:] if kind != "account" and w.r.random() < 0.06 else behind
        link = re.search("[a-z]/@?$", before)
        before = w.pick(BEFORE) + before if not link and w.r.random() < 0.12 else before
        yield kind, before, piece, behind + w.pick(AFTER) * (not link and w.r.random() < 0.2)


def negatives(seed: int, count: int) -> Iterator[str]:
    """Yield innocent lines whose numbers and signs only look like personal data."""
    w = _Writer(seed)
    for _ in range(count):
        text = w.pick(BEFORE) * (w.r.random() < 0.12) + w.fill(w.pick(NEGATIVE))
        yield text + w.pick(AFTER) * (w.r.random() < 0.2)
