"""The queries in DuckDB's SQL, over the same tables; the right answers."""

from __future__ import annotations

WON = "FROM bids b JOIN auctions a ON b.auction = a.id WHERE b.date_time BETWEEN a.date_time AND a.expires"
DAY = "strftime(date_time, '%Y-%m-%d') AS day"
TEN = "time_bucket(INTERVAL 10 SECOND, date_time)"
_RANKS = {1: "price < 10000", 2: "price >= 10000 AND price < 1000000", 3: "price >= 1000000"}
RANKS = ", ".join(f"count(*) FILTER ({holds}) AS rank{rank}_bids" for rank, holds in _RANKS.items())
DISTINCT = ", ".join(
    f"count(DISTINCT {field}){where} AS {field}s{rank}"
    for field in ("bidder", "auction")
    for rank, where in [("", ""), *((str(rank), f" FILTER ({holds})") for rank, holds in _RANKS.items())]
)

SQL = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bids",
    "q1": "SELECT auction, bidder, price * 0.908::DOUBLE AS price, date_time, extra FROM bids",
    "q2": "SELECT auction, price FROM bids WHERE auction % 123 = 0",
    "q3": "SELECT name, city, state, a.id FROM auctions a JOIN people p ON a.seller = p.id "
    "WHERE category = 10 AND state IN ('OR', 'ID', 'CA')",
    "q4": f"SELECT category, avg(final) AS mean FROM (SELECT b.auction, category, max(price) AS final {WON} "
    "GROUP BY b.auction, category) GROUP BY category",
    "q5": """
        WITH counts AS (
            SELECT auction, bucket + INTERVAL (2 * lag) SECOND - INTERVAL 8 SECOND AS start, count(*) AS bids
            FROM (SELECT auction, time_bucket(INTERVAL 2 SECOND, date_time) AS bucket FROM bids), range(5) AS t(lag)
            GROUP BY ALL)
        SELECT start, start + INTERVAL 10 SECOND AS end, auction, bids
        FROM counts QUALIFY rank() OVER (PARTITION BY start ORDER BY bids DESC) = 1""",
    "q6": f"""
        SELECT seller, date_time, avg(price) OVER (PARTITION BY seller ORDER BY date_time ROWS 9 PRECEDING) AS mean
        FROM (SELECT seller, b.date_time, price, {{0}} AS place {WON} QUALIFY place = 1)""".format(
        "row_number() OVER (PARTITION BY b.auction ORDER BY price DESC, b.date_time)"
    ),
    # A join with the highest price is several times as fast as row_number() over all bids.
    "q7": f"""
        WITH placed AS (SELECT {TEN} AS start, * FROM bids),
            highest AS (SELECT start, max(price) AS price FROM placed GROUP BY start)
        SELECT start, start + INTERVAL 10 SECOND AS end, auction, bidder, price
        FROM placed JOIN highest USING (start, price)
        QUALIFY row_number() OVER (PARTITION BY start ORDER BY date_time) = 1""",
    "q8": f"SELECT DISTINCT p.id, p.name, p.start FROM (SELECT id, name, {TEN} AS start FROM people) p "
    f"JOIN (SELECT DISTINCT seller, {TEN} AS start FROM auctions) a ON p.id = a.seller AND p.start = a.start",
    "q9": "SELECT b.auction, item_name, seller, category, bidder, price, b.date_time, b.extra "
    f"{WON} QUALIFY row_number() OVER (PARTITION BY b.auction ORDER BY price DESC, b.date_time) = 1",
    "q10": f"SELECT auction, bidder, price, date_time, extra, {DAY}, strftime(date_time, '%H:%M') AS minute FROM bids",
    "q11": """
        WITH gaps AS (
            SELECT bidder, date_time, date_time - lag(date_time) OVER w > INTERVAL 10 SECOND AS first
            FROM bids WINDOW w AS (PARTITION BY bidder ORDER BY date_time)),
        sessions AS (
            SELECT bidder, date_time, count(*) FILTER (first) OVER (PARTITION BY bidder ORDER BY date_time) AS session
            FROM gaps)
        SELECT bidder, min(date_time) AS start, max(date_time) + INTERVAL 10 SECOND AS end, count(*) AS bids
        FROM sessions GROUP BY bidder, session""",
    "q12": "SELECT bidder, count(*) AS bids FROM bids GROUP BY bidder",
    "q13": "SELECT auction, bidder, price, date_time, 'item ' || auction % 10000 AS value FROM bids",
    "q14": """
        SELECT auction, bidder, euros AS price, CASE WHEN hour BETWEEN 8 AND 18 THEN 'dayTime'
            WHEN hour <= 6 OR hour >= 20 THEN 'nightTime' ELSE 'otherTime' END AS kind,
            date_time, extra, len(extra) - len(replace(extra, 'c', '')) AS c
        FROM (SELECT *, price * 0.908::DOUBLE AS euros, hour(date_time) AS hour FROM bids)
        WHERE euros > 1000000 AND euros < 50000000""",
    "q15": f"SELECT {DAY}, count(*) AS bids, {RANKS}, {DISTINCT} FROM bids GROUP BY day",
    "q16": f"SELECT channel, {DAY}, max(strftime(date_time, '%H:%M')) AS minute, count(*) AS bids, {RANKS}, {DISTINCT} "
    "FROM bids GROUP BY channel, day",
    "q17": f"SELECT auction, {DAY}, count(*) AS bids, {RANKS}, min(price) AS least, max(price) AS most, "
    "avg(price) AS mean, sum(price)::BIGINT AS sum FROM bids GROUP BY auction, day",
    "q18": "SELECT * FROM bids QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) = 1",
    "q19": "SELECT * FROM bids QUALIFY row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time) <= 10",
    "q20": "SELECT auction, bidder, price, b.date_time, item_name, initial_bid, expires, seller "
    "FROM bids b JOIN auctions a ON b.auction = a.id WHERE category = 10",
    "q21": """
        SELECT * FROM (
            SELECT auction, bidder, price, channel, CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1'
                WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                ELSE nullif(regexp_extract(url, 'channel_id=([^&]*)', 1), '') END AS channel_id
            FROM bids)
        WHERE channel_id IS NOT NULL""",
    "q22": "SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, "
    "split_part(url, '/', 6) AS dir3 FROM bids",
}
