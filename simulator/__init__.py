"""A stand-in for WAHA (WhatsApp HTTP API): a program of its own, the witness of the flow tests.

It imports nothing of the product and nothing of the product imports it. What it answers, signs and
retries follows the exchanges and deliveries recorded from a running WAHA 2026.2.1.
"""
