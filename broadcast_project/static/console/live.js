// Live parts of a page: an element with an id, hx-get, hx-trigger="live" and data-live="<seconds>".
//
// It is asked for again while its tab is visible. The answer replaces it; one without data-live is the last.
// Failures double the pause, up to a minute, and show the element's .console-lost-note until it answers again.
(() => {
  "use strict";

  const SLOWEST_SECONDS = 60;
  const failures = new Map();

  function watch(part) {
    const seconds = Math.min(Number(part.dataset.live) * 2 ** (failures.get(part.id) ?? 0), SLOWEST_SECONDS);
    setTimeout(() => ask(part), seconds * 1000);
  }

  function ask(part) {
    if (!part.isConnected) return;
    if (document.hidden) {
      document.addEventListener("visibilitychange", () => ask(part), { once: true });
    } else {
      htmx.trigger(part, "live");
    }
  }

  function lost(event) {
    const part = event.detail.elt;
    if (!part.dataset.live) return;
    failures.set(part.id, (failures.get(part.id) ?? 0) + 1);
    part.classList.add("console-lost");
    watch(part);
  }

  document.addEventListener("htmx:load", (event) => {
    const root = event.detail.elt;
    const parts = [...root.querySelectorAll("[data-live]:not([data-live=''])")];
    if (root.dataset.live) parts.push(root);
    for (const part of parts) {
      failures.delete(part.id);
      watch(part);
    }
  });
  for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
    document.addEventListener(name, lost);
  }
  document.addEventListener("htmx:beforeSwap", (event) => {
    // Anything else than a live part is the sign-in page: the session has ended.
    if (event.detail.requestConfig.elt.dataset?.live && event.detail.xhr.status === 200) {
      if (!event.detail.xhr.getResponseHeader("X-Live")) {
        event.detail.shouldSwap = false;
        location.reload();
      }
    }
  });

  document.addEventListener("DOMContentLoaded", () => {
    // What is shown once is not posted again by a reload.
    const once = document.querySelector("[data-shown-once]");
    if (once) history.replaceState(null, "", once.dataset.shownOnce);
    for (const button of document.querySelectorAll("[data-copy]")) {
      button.addEventListener("click", async () => {
        const field = document.getElementById(button.dataset.copy);
        field.select();
        await navigator.clipboard?.writeText(field.value);
        button.textContent = button.dataset.copied;
      });
    }
  });
})();
