"""Who ordered what in orders.csv? Nobody: 4,000 invented orders, drawn from one seed, the same bytes at every run.

python data/make_orders.py [FILE]    writes FILE, or else orders.csv beside this script
"""

import csv
import sys
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

COLUMNS = "id ordered_at customer country item quantity unit_price total status".split()
COUNTRIES = {"DE": 24, "FR": 17, "GB": 15, "NL": 10, "US": 9, "PL": 8, "SE": 6, "IT": 6, "JP": 3, "BR": 2}  # weights
PRICES = [("notebook", 450), ("coffee beans", 1190), ("pen set", 1290), ("desk lamp", 3490), ("backpack", 5900),
          ("keyboard", 7900), ("headphones", 12900), ("monitor", 21900), ("office chair", 28900)]
STATUSES = {"delivered": 81, "shipped": 6, "paid": 4, "returned": 5, "cancelled": 4}


def orders(count: int = 4_000, seed: int = 2024) -> list[list[object]]:
    """The rows, oldest first; money is counted in cents until it is written."""
    # Of Random only random() and choices(): they give the same numbers on every machine and Python version.
    random, ordered_at, rows = Random(seed), datetime(2024, 1, 1, 8), []
    for number in range(1, count + 1):
        ordered_at += timedelta(seconds=1 + int(random.random() * 15_600))  # some eleven a day, a year in all
        customer = 1 + int(random.random() * random.random() * 900)  # few come often, most come seldom
        country = Random(customer).choices(list(COUNTRIES), list(COUNTRIES.values()))[0]  # a customer has one
        item, cents = random.choices(PRICES, [24, 19, 18, 11, 9, 8, 6, 3, 2])[0]
        quantity = random.choices([1, 2, 3, 4, 5, 10, 25], [60, 20, 8, 5, 4, 2, 1])[0]
        status = random.choices(list(STATUSES), list(STATUSES.values()))[0]
        money = [f"{amount // 100}.{amount % 100:02}" for amount in (cents, cents * quantity)]
        rows.append([number, f"{ordered_at.isoformat()}Z", f"C-{customer:04}", country, item, quantity, *money, status])
    return rows


if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).with_name("orders.csv")
    with target.open("w", newline="", encoding="ascii") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *orders()])
