from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import grammar
import grammar_board
import grammar_casual
import grammar_clerk
import grammar_composed
import grammar_evader
import grammar_forms
import grammar_letters
import grammar_other
import grammar_written
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import Verdict, judge

from embedding.kernel import patterns
from embedding.text import mask as masking
from embedding.text.mask import mask
from embedding.text.normalise import normalise
from generated import examples

STYLES = [
    grammar,
    grammar_other,
    grammar_written,
    grammar_composed,
    grammar_board,
    grammar_casual,
    grammar_letters,
    grammar_clerk,
    grammar_evader,
]
SEED, COUNT = 20200203, examples(4_000)


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.__name__)
def test_recall_and_precision_on_the_generated_sets(style: ModuleType) -> None:
    verdict = judge(style.positives(SEED, COUNT), style.negatives(SEED + 1, COUNT))
    assert verdict.recall >= 0.99, (verdict.by_kind(), verdict.examples[:20])
    assert verdict.precision >= 0.95, verdict.examples[:20]
    # 트위터 gildong, and more, is not told apart; nor is cc @ name
    least = 0.94 if style in (grammar_board, grammar_evader) else 0.98
    assert min(verdict.by_kind().values()) >= least, (verdict.by_kind(), verdict.examples[:20])
    assert set(verdict.by_kind()) == set(style.KINDS)


def test_a_style_that_no_rule_was_written_for() -> None:
    verdict = judge(grammar_forms.positives(SEED, COUNT), grammar_forms.negatives(SEED + 1, COUNT))
    assert verdict.recall >= 0.975, verdict.by_kind()
    assert verdict.precision >= 0.95
    assert set(verdict.by_kind()) == set(grammar_forms.KINDS)


def test_the_judge_sees_what_is_left_and_what_is_lost() -> None:
    assert judge([("phone", "제 번호는 ", "1234", "")], []).recall == 0.0
    lost: Verdict = judge([("phone", "5 ", "010-1234-5678", "")], ["010-1234-5678"])
    assert (lost.recall, lost.wrong) == (1.0, 1)


def test_masking_twice_changes_nothing() -> None:
    for style in STYLES:
        for _, *parts in style.positives(7, COUNT // 4):
            once = mask(normalise("".join(parts))).text
            assert mask(once).text == once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("주민번호 900101-1234567 입니다", "주민번호 <resident> 입니다"),
        ("외국인등록번호 900101-5234567", "외국인등록번호 <resident>"),
        ("９００１０１－１２３４５６７", "<resident>"),
        ("900101-1******", "<resident>"),
        ("010-1234-5678로 전화", "<phone> 전화"),
        ("01012345678", "<phone>"),
        ("전화 02)123-4567", "전화 <phone>"),
        ("+82 10 1234 5678", "<phone>"),
        ("공일공 일이삼사 오육칠팔", "<phone>"),
        ("O1O-1234-5678", "<phone>"),
        ("010-팔삼사이-6399 24시", "<phone> 24시"),
        ("3일, 공일공에 칠공육삼에 일팔구삼이에요", "3일, <phone> 이에요"),
        ("주번 팔오공일공일 다시 일이삼사오육칠", "주번 <resident>"),
        ("앞자리 850101 뒷자리 1234567", "앞자리 <resident>"),
        ("사기꾼 육공칠이-5128-8689-9712", "사기꾼 <card>"),
        ("hong77 카톡 추가", "<handle> 카톡 추가"),
        ("텔레 추가 hong77", "텔레 추가 <handle>"),
        ("hong77#naver.com", "<email>"),
        ("사건번호 2022-853432 / 국민청원 287호", "사건번호 2022-853432 / 국민청원 287호"),
        ("바코드 8809037186581", "바코드 8809037186581"),
        ("주문번호 2009111028311698이었고", "주문번호 2009111028311698이었고"),
        ("일 이 삼 사 오 육 칠 팔", "일 이 삼 사 오 육 칠 팔"),
        ("4000-1234-5678-9010 카드", "<card> 카드"),
        ("국민은행 123456-78-901234 홍씨", "국민은행 <account> 홍씨"),
        ("신한 110123456789", "신한 <account>"),
        ("a.b+c@naver.com으로", "<email>"),
        ("HP.010-1234-5678", "HP. <phone>"),
        ("0️⃣1️⃣0️⃣ 1️⃣2️⃣3️⃣4️⃣ 5️⃣6️⃣7️⃣8️⃣", "<phone>"),
        ("ㅇㅣㅇ-4527-9846", "<phone>"),
        ("010--4936--삼팔이일이고요", "<phone> 이고요"),
        ("문의 070, 8818, 9821", "문의 <phone>"),
        ("제 번호 +82)10-2469-0266이에요", "제 번호 <phone> 이에요"),
        ("5126-XXXX-XXXX-0313", "<card>"),
        ("401626######9920 취소", "<card> 취소"),
        ("국민은행공일이삼사오육칠팔구공일", "국민은행 <account>"),
        ("계좌 우리 5734-육공팔-191989", "계좌 우리 <account>"),
        ("농협은행/054 6336 5277 79/박", "농협은행/ <account> /박"),
        ("7777 0192 4471(토뱅)", "<account> (토뱅)"),
        ("393770596912 그 계좌로 보냈어요", "<account> 그 계좌로 보냈어요"),
        ("국민은행 38213639629419 3월분", "국민은행 <account> 3월분"),
        ("우체국 택배 4355237549068 조회", "우체국 택배 4355237549068 조회"),
        ("법인등록번호 110111-2343908", "법인등록번호 110111-2343908"),
        ("예약번호 010-1234-5678", "예약번호 <phone>"),
        ("주문번호 6105659535949295", "주문번호 6105659535949295"),
        ("(OOO-OOOO-OOOO)", "(OOO-OOOO-OOOO)"),
        ("hong<at>naver.com", "<email>"),
        ("hong_at_naver . com", "<email>"),
        ("hong 골뱅이 쥐메일", "<email>"),
        ("good at math. com on", "good at math. com on"),
        ("via @dev.korea", "via <handle>"),
        ("카톡 문의 gildong", "카톡 문의 <handle>"),
        ("gildong으로 카톡주세요", "<handle> 카톡주세요"),
        ("인스타 맞팔해요 gildong", "인스타 맞팔해요 <handle>"),
        ("트위터 trend 1위", "트위터 trend 1위"),
        ("트위터 gildong 보세요", "트위터 <handle> 보세요"),
        ("인스타 본계 hong_gd 부계 없음", "인스타 본계 <handle> 부계 없음"),
        ("인스타hong_gd 선팔", "인스타 <handle> 선팔"),
        ("hong_gd으로 인스타 디엠", "<handle> 인스타 디엠"),
        ("hong77님 말씀이 맞아요", "<handle> 말씀이 맞아요"),
        ("📸 hong_gd", "📸 <handle>"),
        ("롤 닉 감자도리#KR1", "롤 닉 <handle>"),
        ("감자도리#31234 친추", "<handle> 친추"),
        ("게임 아이디 HongGD", "게임 아이디 <handle>"),
        ("카톡 k언더바hong", "카톡 <handle>"),
        ("답글: @user-4h2zcef9h 봐", "답글: <handle> 봐"),
        ("t.me/hong77", "<url>"),
        ("youtube.com/@감자티비 구독", "<url> 구독"),
        ("#맛집#2024 #제주", "#맛집#2024 #제주"),
        ("주문#12345 이슈#1234", "주문#12345 이슈#1234"),
        ("@media (max-width: 5px)", "@media (max-width: 5px)"),
        ("@types/node 설치, react@18.2.0", "@types/node 설치, react@18.2.0"),
        ("@Override 빼먹음", "@Override 빼먹음"),
        ("7시 @강남역에서", "7시 @강남역에서"),
        ("유튜브 ytn24, 인스타 iphone15pro", "유튜브 ytn24, 인스타 iphone15pro"),
        ("010 66**2867 확인", "<phone> 확인"),
        ("061)50X-X611", "<phone>"),
        ("해외라 +82-10-4056-0**8 로", "해외라 <phone> 로"),
        ("0 1 0 ) 8 9 2 6 5 3 0 5", "<phone>"),
        ("010-XXXX-XXXX, 010-****-1234", "010-XXXX-XXXX, 010-****-1234"),
        ("010-OOOO-1234 당첨", "010-OOOO-1234 당첨"),
        ("주민번호 020827-3OOOOOO", "주민번호 <resident>"),
        ("상자 033x120x120", "상자 033x120x120"),
        ("신한 110-7**-641590", "신한 <account>"),
        ("5811●●-●4-467511 국민은행", "<account> 국민은행"),
        ("우리은행 1002-***-******", "우리은행 1002-***-******"),
        ("품번 110-7**-641590", "품번 110-7**-641590"),
        ("카드 5400 OOOO OOOO 3954", "카드 <card>"),
        ("아멕스 3 4 6 2 6 9 5 5 6 8 0 2 5 1 4 결제", "아멕스 <card> 결제"),
        ("카카오톡 ID\nhong77 감사", "카카오톡 ID <handle> 감사"),
        ("카카오톡\nwindows10 설치", "카카오톡 windows10 설치"),
        ("트위터\ntrend 1위", "트위터 trend 1위"),
        ("디코 hong504#1963 친추", "디코 <handle> 친추"),
        ("#맛집#1963", "#맛집#1963"),
        ("모임 @한신아파트 카페", "모임 @한신아파트 카페"),
        ("카톡 test.hwp, 인스타 user_id 컬럼", "카톡 test.hwp, 인스타 user_id 컬럼"),
        ("010-1234-567X", "<phone>"),
        ("010♡1234♡5678", "<phone>"),
        ("○1○ 8437 9320", "<phone>"),
        ("주민번호 971120,1090666", "주민번호 <resident>"),
        ("900101,1234567원", "900101,1234567원"),
        ("계좌 국민 931066,88,688044", "계좌 국민 <account>"),
        ("기업 1000,2000,3000,4000", "기업 1000,2000,3000,4000"),
        ("국민 1,234,567,890원", "국민 1,234,567,890원"),
        ("110606365109로 송금했는데", "<account> 송금했는데"),
        ("302ー6931ー1689ー36 농협은행", "<account> 농협은행"),
        ("카드 3571,9110,2459,3312", "카드 <card>"),
        ("4396.****.****.9534", "<card>"),
        ("hong77[@]naver.com", "<email>"),
        ("카톡 update 하래요", "카톡 update 하래요"),
        ("through Kakaotalk conversations", "through Kakaotalk conversations"),
        ("국민청원이 2019. 5. 30일 25만명", "국민청원이 2019. 5. 30일 25만명"),
        ("계좌번호 578-196290-18-958 IBK", "계좌번호 <account> IBK"),
        ("확인하니 190101120857이었고", "확인하니 190101120857이었고"),
        ("@ 3887원씩", "@ 3887원씩"),
        ("@ gil_77 님 말씀", "<handle> 님 말씀"),
        ("@홍길동 보세요", "<handle> 보세요"),
        ("카톡 아이디: hong1234 추가", "카톡 아이디: <handle> 추가"),
        ("거소신고번호 970820 5822218", "거소신고번호 <resident>"),
        ("법인번호 110111-5878242", "법인번호 110111-5878242"),
        ("ISBN: 89-4745-501-5", "ISBN: 89-4745-501-5"),
        ("시리얼넘버 8811-9142-9387-8948", "시리얼넘버 8811-9142-9387-8948"),
        ("uuid 82544262-6561-4491-a582-053952423335", "uuid 82544262-6561-4491-a582-053952423335"),
        ("doi 10.1038/s41586-030-2019-0", "doi 10.1038/s41586-030-2019-0"),
        ("Amazon order 053-8550362-5473858", "Amazon order 053-8550362-5473858"),
        ("붙여야 하나요? IP 118.80.214.19", "붙여야 하나요? IP 118.80.214.19"),
        ("우체국 원주율 3.14159265358979", "우체국 원주율 3.14159265358979"),
        ("우체국 65646131473031. 3일 전에", "우체국 <account> . 3일 전에"),
        ("전화 3번, 전국 7540-1096명", "전화 3번, 전국 7540-1096명"),
        ("010-2186-2524,82-10 6536 8943", "<phone> , <phone>"),
        ("032)8325-2978 1566-4865", "<phone> 1566-4865"),
        ("git@github.com:openai/gym.git", "git@github.com:openai/gym.git"),
        ("root@localhost:~# ls", "root@localhost:~# ls"),
        ("df@weights 하면", "df@weights 하면"),
        (r"\@ifnextchar", r"\@ifnextchar"),
        ("OIO lol IlIl", "OIO lol IlIl"),
        ("보이스피싱 +86 15550287289", "보이스피싱 <phone>"),
        ("+998(93)134-94-86, +82 10 1234 5678", "<phone> , <phone>"),
        ("00700-86-138-6987-7785", "<phone>"),
        ("手机号 13875444121", "手机号 <phone>"),
        ("My US number is (279) 555-0142", "My US number is <phone>"),
        ("call 2019-2020 season, call 1577-9050", "call 2019-2020 season, call 1577-9050"),
        ("IBAN DE86 1717 2097 3509 7300 41", "IBAN <account>"),
        ("account number 707275671 at Chase", "account number <account> at Chase"),
        ("Send it to Kookmin Bank 772682 41 613906", "Send it to Kookmin Bank <account>"),
        ("KB 095587 하고 49 하고 097918", "KB <account>"),
        ("신한 1000점 2000점 3000점", "신한 1000점 2000점 3000점"),
        ("카드 5557하트8720하트6752하트4122", "카드 <card>"),
        ("카드 3000원 4000원 5000원 6000원", "카드 3000원 4000원 5000원 6000원"),
        ("010하트1234하트5678", "<phone>"),
        ("0.1.0.4.2.2.0.9.8.2.2", "<phone>"),
        ("주민번호 6-8-1-0-1-7-1-9-8-0-1-8-3", "주민번호 <resident>"),
        ("주민등록 7 1 0 7 0 8 2 3 7 8 2 5 5 이 사람", "주민등록 <resident> 이 사람"),
        ("주민번호 앞자리 910816 뒤 2375489", "주민번호 앞자리 <resident>"),
        ("ARC 540227^6624175", "ARC <resident>"),
        ("h o n g @ naver.com", "<email>"),
        ("hongⓐnaver.com", "<email>"),
        ("hong at mail(dot)ru", "<email>"),
        ("hong@naver。com, kim@\nnaver.com", "<email> , <email>"),
        ("微信号：hong_77", "微信号: <handle>"),
        ("Discord: gildong#2007", "Discord: <handle>"),
        ("so true LINE ID: gil.dong_", "so true LINE ID: <handle>"),
        ("https://a.example/user/010-1234-5678?q=가나다", "<url> 가나다"),
    ],
)
def test_one_of_each(text: str, expected: str) -> None:
    assert " ".join(mask(normalise(text)).text.split()) == expected


def test_the_check_digit_does_not_matter() -> None:
    for last in range(10):
        assert mask(f"900101-123456{last}").counts == {"resident": 1}


def test_counts_by_kind() -> None:
    text = "010-1234-5678, 010-2345-6789 그리고 a@b.kr"
    assert mask(text).counts == {"phone": 2, "email": 1}


@given(st.text(alphabet="0123456789-@. 가a/()+*\n", max_size=200))
def test_any_text_is_masked_without_an_error(text: str) -> None:
    result = mask(text)
    assert bool(result.counts) == (result.text != text)


@pytest.mark.parametrize(
    "piece",
    [
        "0",
        "1-",
        "a",
        "a@",
        "010-",
        "www.",
        "12 ",
        "+1 ",
        "@",
        "은행",
        "공일 ",
        "일에",
        "카톡 ",
        "a.a",
        "a_",
        "minji",
        "네이버",
        "닉가#1",
        "0○",
        "1,",
        "카톡 a1.",
        "카톡\n",
        "1*-",
        "0OOOO",
        "계좌 1**",
        "1하트",
        "카드 3000|",
        "a @ ",
        "DE12 3456 ",
        "order no. 1-",
        "call 12 ",
        "1-\n",
    ],
)
def test_long_repetitions_are_quick(piece: str) -> None:
    """Quadratic time would be some minutes; the limit is far from both, on any machine."""
    started = time.process_time()
    mask(piece * 20_000)
    assert time.process_time() - started < 60.0


@pytest.mark.parametrize(
    "piece", ["공일공 일이 ", "1삼 ", "일일 이", "삼 112일_", "12○", "-010O", "공일공 - "]
)
def test_what_a_number_that_is_said_costs_does_not_grow_with_the_text(piece: str) -> None:
    """Characters that patterns are given, of a text and of one four times as long."""
    short, long = (looked_at(piece * times) for times in (100, 400))
    assert long < 4.5 * short


def looked_at(text: str) -> int:
    """Characters that `mask` has patterns look at, over all of its calls."""
    seen = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any) -> Any:
            nonlocal seen
            subject = next(one for one in reversed(given) if isinstance(one, str))
            seen += len(subject)
            return call(*given)

        return counting

    with pytest.MonkeyPatch.context() as patch:
        held = list(vars(masking).values())
        held += [row[-1] for group in held if isinstance(group, tuple) for row in group]
        for pattern in (one for one in held if isinstance(one, patterns._Later)):
            for name in ("search", "match", "fullmatch", "sub", "subn", "finditer"):
                patch.setattr(pattern, name, counted(getattr(pattern._compiled, name)), False)
        mask(text)
    return seen
