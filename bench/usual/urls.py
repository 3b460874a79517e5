"""A view that does nothing but insert one row."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import path

from bench.usual.models import RawWebhook


def receive(request: HttpRequest) -> HttpResponse:
    RawWebhook.objects.create(body=request.read())
    # Else the server sends it in chunks, at a cost of its own.
    return HttpResponse(status=200, headers={"Content-Length": "0"})


urlpatterns = [path("hook", receive)]
