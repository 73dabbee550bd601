// What the pages need besides htmx: the theme, keys, copying, and pausing what is live. Nothing here asks the server.
"use strict";
(() => {
  const root = document.documentElement;
  const stored = () => { try { return localStorage.getItem("recallog-theme"); } catch { return null; } };
  const store = (theme) => { try { localStorage.setItem("recallog-theme", theme); } catch { /* it is not kept */ } };
  if (stored()) root.dataset.theme = stored();
  root.classList.add("scripted");

  const say = (text) => { document.getElementById("said").textContent = text; };
  const each = (selector, act) => document.querySelectorAll(selector).forEach(act);

  function toggleTheme() {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    store(root.dataset.theme);
  }

  async function copy(button) {
    const text = button.parentElement.querySelector("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
      say("Copied");
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    } catch {
      getSelection().selectAllChildren(button.parentElement.querySelector("code"));
      say("Selected: copy it with your keyboard");
    }
  }

  function pause(button) {
    const paused = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", paused);
    button.querySelector("span").textContent = paused ? "Continue" : "Pause";
    document.body.dataset.paused = paused ? "yes" : "";
    say(paused ? "Paused" : "Live");
  }

  function showKeys() {
    const dialog = document.getElementById("keys");
    const list = dialog.querySelector("dl");
    list.querySelectorAll("[data-of-page]").forEach((line) => line.remove());
    each("a[data-key]", (link) => {
      const term = document.createElement("dt"), key = document.createElement("kbd"), what = document.createElement("dd");
      key.textContent = link.dataset.key;
      what.textContent = link.textContent;
      term.append(key);
      term.dataset.ofPage = what.dataset.ofPage = "";
      list.append(term, what);
    });
    dialog.showModal();
  }

  addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if ("themeToggle" in button.dataset) toggleTheme();
    else if ("copy" in button.dataset) copy(button);
    else if ("pause" in button.dataset) pause(button);
    else if ("showKeys" in button.dataset) showKeys();
    else if (button.dataset.toggle) {
      const open = document.getElementById(button.dataset.toggle).classList.toggle("open");
      button.setAttribute("aria-expanded", open);
    }
  });

  let pending = "";
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, dialog")) return;
    const keys = pending ? `${pending} ${event.key}` : event.key;
    const link = document.querySelector(`a[data-key="${CSS.escape(keys)}"]`);
    pending = !pending && event.key === "g" ? "g" : "";
    if (link) link.click();
    else if (event.key === "/" && document.querySelector("[data-search]")) document.querySelector("[data-search]").focus();
    else if (event.key === "?") showKeys();
    else if (event.key === "." && document.querySelector("[data-pause]")) pause(document.querySelector("[data-pause]"));
    else return;
    event.preventDefault();
  });

  // A field with `data-submit` sends its form when it changes.
  addEventListener("change", (event) => {
    if ("submit" in event.target.dataset) event.target.form.requestSubmit();
  });

  // Fields that are empty do not belong into the address of a page.
  addEventListener("submit", (event) => {
    if (event.target.method !== "get") return;
    for (const field of event.target.elements) field.disabled = field.disabled || (field.name && !field.value);
  });
  addEventListener("pageshow", () => each("form[method=get] [disabled], form:not([method]) [disabled]", (field) => { field.disabled = false; }));

  // What polls has `data-live`. It waits while it is paused, and while nobody looks.
  addEventListener("htmx:beforeRequest", (event) => {
    const live = event.target.closest && event.target.closest("[data-live]");
    if (live && (document.body.dataset.paused || document.hidden)) event.preventDefault();
  });
  addEventListener("htmx:sendError", (event) => {
    const place = event.detail.target;
    if (place.querySelector(".problem[role=alert]")) return;
    const problem = document.createElement("p");
    problem.className = "problem";
    problem.setAttribute("role", "alert");
    problem.textContent = "The server does not answer. Is it running? This page tries again.";
    place.append(problem);
  });
  addEventListener("htmx:afterSwap", (event) => {
    document.querySelectorAll("[data-live] .problem[role=alert]").forEach((each) => { if (!event.target.contains(each)) each.remove(); });
  });
})();
