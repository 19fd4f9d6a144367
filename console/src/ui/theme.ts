/** Light or dark: that of the system, unless the user has chosen one. */

import { store } from "../store";

type Theme = "light" | "dark";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const chosen = (): Theme | null => {
  const kept = localStorage.getItem("headrace.theme");
  return kept === "light" || kept === "dark" ? kept : null;
};

export const theme = store<Theme>(chosen() ?? (dark.matches ? "dark" : "light"));

export function startTheme(): void {
  const show = (now: Theme) => document.documentElement.setAttribute("data-theme", now);
  // Applied before its subscribers, which draw with its colours, are notified.
  show(theme.get());
  dark.addEventListener("change", () => {
    if (!chosen()) switchTo(dark.matches ? "dark" : "light");
  });
}

function switchTo(next: Theme): void {
  document.documentElement.setAttribute("data-theme", next);
  theme.set(next);
}

export function toggleTheme(): void {
  const next = theme.get() === "dark" ? "light" : "dark";
  localStorage.setItem("headrace.theme", next);
  switchTo(next);
}
