"""`python -m bench.usual.run TASK NUMBER FIRST SESSION SECONDS`: one broadcast the usual way, waited for; JSON."""

from __future__ import annotations

import json
import os
import sys
import time

import django


def main() -> None:
    task, number, first, session_name, seconds = sys.argv[1:]
    os.environ["DJANGO_SETTINGS_MODULE"] = "bench.usual.settings"
    django.setup()
    from bench.usual import worker
    from bench.usual.models import Recipient

    rows = [
        Recipient(phone=str(int(first) + place), text=f"Oi Pessoa {place}, o curso Python tem turma.")
        for place in range(int(number))
    ]
    made = Recipient.objects.bulk_create(rows)
    give_up = time.monotonic() + float(seconds)
    for recipient in made:
        worker.app.send_task(task, args=(recipient.pk, session_name))
    mine = Recipient.objects.filter(pk__in=[recipient.pk for recipient in made], status="sent")
    while (sent := mine.count()) < len(made) and time.monotonic() < give_up:
        time.sleep(0.1)
    sys.stdout.write(json.dumps({"sent": sent}) + "\n")


if __name__ == "__main__":
    main()
