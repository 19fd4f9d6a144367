/** Light or dark: what the system says, unless one has chosen. */

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
  // Shown before whoever draws with its colours is told.
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
