/** Line icons, 16 by 16. */

const PATHS: Record<string, string> = {
  graph: "M3 5.5h3v3H3zM10 2.5h3v3h-3zM10 10.5h3v3h-3zM6 7h2m0 0V4h2M8 7v5h2",
  chart: "M2.5 13.5h11M3 10l3-3.5 2.5 2L13 4",
  bell: "M8 2.5c-2.2 0-3.5 1.6-3.5 3.8 0 3-1.3 3.7-1.3 4.7h9.6c0-1-1.3-1.7-1.3-4.7C11.5 4.1 10.2 2.5 8 2.5M6.7 13.3a1.5 1.5 0 0 0 2.6 0",
  prompt: "M3 4.5l3.5 3.5L3 11.5M8 12h5",
  list: "M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01",
  branch:
    "M4.5 5.5v5M4.5 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3M4.5 13.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3M11.5 6.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3M11.5 6.5c0 3-3.5 2.5-7 3",
  shield: "M8 2l5 1.8V7.5c0 3.2-2.2 5.4-5 6.5-2.8-1.1-5-3.3-5-6.5V3.8zM5.8 8l1.6 1.6L10.4 6.5",
  layers: "M8 2.5l5.5 3L8 8.5l-5.5-3zM2.5 8.3L8 11.3l5.5-3M2.5 11L8 14l5.5-3",
  cpu: "M4.5 4.5h7v7h-7zM6.5 2v2.5M9.5 2v2.5M6.5 11.5V14M9.5 11.5V14M2 6.5h2.5M2 9.5h2.5M11.5 6.5H14M11.5 9.5H14",
  play: "M5 3l8 5-8 5z",
  user: "M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M3 13.5c.5-2.5 2.5-3.5 5-3.5s4.5 1 5 3.5",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9M10.5 10.5l3 3",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  check: "M3 8.5l3.5 3.5L13 4.5",
  close: "M4 4l8 8M12 4l-8 8",
  sun: "M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  arrow: "M3 8h10M9 4l4 4-4 4",
  back: "M13 8H3M7 4L3 8l4 4",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  help: "M6 6a2 2 0 1 1 2.8 1.8c-.6.3-.8.7-.8 1.4M8 11.8h.01",
  download: "M8 2.5v8M4.5 7.5L8 11l3.5-3.5M2.5 13.5h11",
  refresh: "M13 4v3h-3M13 7a5.3 5.3 0 1 0 .2 2.5",
  leave: "M6.5 2.5h-4v11h4M6.5 8h7M10.5 5l3 3-3 3",
  stop: "M4.5 4.5h7v7h-7z",
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name] ?? ""} />
    </svg>
  );
}

export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#0b6b7d" />
      <g fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round">
        <path d="M5 11c4 0 5 3 9 3s5-3 9-3 3 1 4 1" />
        <path d="M5 17c4 0 5 3 9 3s5-3 9-3 3 1 4 1" opacity=".75" />
        <path d="M5 23c4 0 5 3 9 3s5-3 9-3 3 1 4 1" opacity=".45" />
      </g>
    </svg>
  );
}
