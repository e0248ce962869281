from __future__ import annotations

from datetime import UTC, datetime

from yeoron_simweb.config import PARTS, SimwebConfig
from yeoron_simweb.corpus import CorpusDocument, from_records
from yeoron_simweb.library import Library, spread

CONFIG = SimwebConfig()


def documents(count: int, day: str = "2020-02-01") -> tuple[CorpusDocument, ...]:
    return from_records([{"date": day, "text": f"글 {n}"} for n in range(count)], CONFIG).documents


def test_documents_of_a_day_are_spread_over_it_in_order() -> None:
    times = [time for time, _ in spread(documents(4))]
    midnight = datetime(2020, 2, 1, tzinfo=UTC).timestamp()
    assert [(time - midnight) / 3600 for time in times] == [3, 9, 15, 21]


def test_times_of_day_are_kept_and_all_times_differ() -> None:
    records = [{"date": "2020-02-01T12:00:00Z", "text": f"{n}"} for n in range(3)]
    records.append({"date": "2020-02-01", "text": "날"})
    placed = spread(from_records(records, CONFIG).documents)
    times = [time for time, _ in placed]
    assert times == sorted(set(times))
    noon = datetime(2020, 2, 1, 12, tzinfo=UTC).timestamp()
    assert all(abs(time - noon) < 0.01 for time in times)


def test_the_layout_is_the_same_each_time_and_near_the_shares() -> None:
    first = Library.build(documents(4000), CONFIG.shares)
    again = Library.build(documents(4000), CONFIG.shares)
    assert first.items == again.items
    for part in PARTS:
        assert abs(len(first.parts[part]) / 4000 - CONFIG.shares[part]) < 0.03


def test_ids_do_not_depend_on_the_days_played_and_copies_have_their_own() -> None:
    whole = Library.build(
        (*documents(3, "2020-01-31"), *documents(3), *documents(3)), CONFIG.shares
    )
    tail = Library.build((*documents(3), *documents(3)), CONFIG.shares)
    assert len(whole.by_id) == len(whole.items) == 9
    assert {item.id for item in tail.items} < set(whole.by_id)


def test_a_part_of_weight_zero_stays_empty() -> None:
    library = Library.build(documents(200), {"board": 1.0})
    assert [part for part in PARTS if library.parts[part]] == ["board"]


def test_a_given_part_goes_before_the_shares_and_numbers_count_within_it() -> None:
    records = [{"date": "2020-02-01", "text": f"{n}", "part": "life"} for n in range(5)]
    library = Library.build(from_records(records, CONFIG).documents, {"board": 1.0})
    assert [item.number for item in library.parts["life"]] == [0, 1, 2, 3, 4]
    assert library.items == library.parts["life"]


def test_a_document_without_title_gets_a_headline_from_its_first_line() -> None:
    record = {"date": "2020-02-01", "text": "가" * 50 + "\n둘째 줄"}
    item = Library.build(from_records([record], CONFIG).documents, CONFIG.shares).items[0]
    assert item.title == "가" * 29 + "…"
    assert not item.titled
