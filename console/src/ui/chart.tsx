/** Charts: lines on a canvas (uPlot), bars and figures in HTML, sparklines in SVG. */

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { axisTime, cell, count, moment, short } from "../format";
import { type Bars, type Drawable, type Figures, type Lines, plot } from "../plot";
import { useStore } from "../store";
import { pointed } from "../timeline";
import { theme } from "./theme";

const token = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = (index: number) => token(`--series-${(index % 6) + 1}`);

export function AnswerChart({
  answer,
  measure,
  height = 220,
  label,
}: {
  answer: Drawable;
  measure?: string | null;
  height?: number;
  label: string;
}) {
  const drawn = plot(answer, measure);
  if (drawn.kind === "lines") return <LineChart of={drawn} height={height} label={label} />;
  if (drawn.kind === "bars") return <BarChart of={drawn} />;
  if (drawn.kind === "figures") return <FigureList of={drawn} />;
  if (drawn.kind === "cut")
    return (
      <p class="muted">
        A chart needs all rows, and only the first {count(answer.rows.length)} were read: aggregate
        more, or add ORDER BY and LIMIT.
      </p>
    );
  return <p class="muted">No number to draw yet.</p>;
}

/** Chooses the number to draw, if there are several. */
export function MeasureSelect({
  of,
  value,
  onChange,
}: {
  of: readonly string[];
  value?: string | null;
  onChange: (measure: string) => void;
}) {
  if (of.length < 2) return null;
  return (
    <select
      class="input"
      aria-label="Number to draw"
      value={value ?? of[0]}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {of.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

export function LineChart({ of, height, label }: { of: Lines; height: number; label: string }) {
  const box = useRef<HTMLDivElement>(null);
  const made = useRef<uPlot | null>(null);
  const settled = useRef(of.settled);
  settled.current = of.settled;
  const [tip, setTip] = useState<{ left: number; top: number; at: number } | null>(null);
  const look = useStore(theme);
  const names = of.series.map((one) => one.name).join("\n");
  const data = [of.xs, ...of.series.map((one) => one.values)] as uPlot.AlignedData;

  useEffect(() => {
    const target = box.current!;
    const chart = new uPlot(
      options(
        of,
        target.clientWidth || 300,
        height,
        () => settled.current,
        (u) => {
          const { left, top, idx } = u.cursor;
          setTip(idx == null || left == null || left < 0 ? null : { left, top: top ?? 0, at: idx });
        },
      ),
      data,
      target,
    );
    made.current = chart;
    const observer = new ResizeObserver(() => {
      if (target.clientWidth) chart.setSize({ width: target.clientWidth, height });
    });
    observer.observe(target);
    return () => {
      observer.disconnect();
      chart.destroy();
      made.current = null;
    };
  }, [names, look, height]);

  useEffect(() => made.current?.setData(data), [of]);

  return (
    <figure>
      <div class="chart" ref={box} role="img" aria-label={`${label}: ${of.measure} over time`}>
        {tip && (
          <Tip
            of={of}
            at={tip.at}
            left={tip.left}
            top={tip.top}
            width={box.current?.clientWidth ?? 0}
          />
        )}
      </div>
      <Legend
        names={of.series.map((one) => one.name)}
        others={of.others}
        settled={of.settled !== null && of.settled < (of.xs.at(-1) ?? 0)}
      />
    </figure>
  );
}

function options(
  of: Lines,
  width: number,
  height: number,
  settled: () => number | null,
  moved: (u: uPlot) => void,
): uPlot.Options {
  const grid = { stroke: token("--line"), width: 1 };
  const font = `11px ${token("--sans")}`;
  const axis = { stroke: token("--ink-3"), font, grid, ticks: { show: false } };
  const alone = of.series.length === 1;
  return {
    width,
    height,
    legend: { show: false },
    cursor: { points: { size: 6 }, drag: { x: false, y: false } },
    hooks: { setCursor: [moved], drawClear: [(u) => shade(u, settled())] },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    scales: {
      y: { range: (_, low, high) => [Math.min(0, low ?? 0), high && high > 0 ? high * 1.08 : 1] },
    },
    axes: [
      {
        ...axis,
        size: 26,
        space: 70,
        values: (_, ticks) =>
          ticks.map((tick) => axisTime(tick, (ticks.at(-1) ?? 0) - (ticks[0] ?? 0))),
      },
      { ...axis, size: 46, space: 34, values: (_, ticks) => ticks.map((tick) => short(tick)) },
    ],
    series: [
      {},
      ...of.series.map((one, index) => ({
        label: one.name,
        stroke: colour(index),
        width: 1.75,
        fill: alone ? `color-mix(in srgb, ${colour(index)} 12%, transparent)` : undefined,
        points: { show: true, size: 5, filter: (u: uPlot, at: number) => pointed(u.data[at]!) },
        spanGaps: false,
      })),
    ],
  };
}

/** Shades the range after the watermark, which may still change. */
function shade(u: uPlot, from: number | null): void {
  const { left, width, top, height } = u.bbox;
  if (from === null) return;
  const x = Math.max(left, u.valToPos(from, "x", true));
  if (x >= left + width) return;
  u.ctx.save();
  u.ctx.fillStyle = token("--sunken");
  u.ctx.fillRect(x, top, left + width - x, height);
  u.ctx.restore();
}

function Tip({
  of,
  at,
  left,
  top,
  width,
}: {
  of: Lines;
  at: number;
  left: number;
  top: number;
  width: number;
}) {
  const from =
    left + 62 + 180 > width ? { right: `${width - left - 36}px` } : { left: `${left + 62}px` };
  return (
    <div class="chart-tip" style={{ ...from, top: `${Math.max(0, top - 10)}px` }}>
      <div class="muted num">{moment((of.xs[at] ?? 0) * 1000)}</div>
      {of.series.map((one, index) => (
        <div key={one.name}>
          <span class={`swatch s${index + 1}`} />
          {one.name}
          <b>{cell(one.cells[at] ?? null)}</b>
        </div>
      ))}
    </div>
  );
}

export function Legend({
  names,
  others = 0,
  settled = false,
}: {
  names: string[];
  others?: number;
  settled?: boolean;
}) {
  if (names.length < 2 && !others && !settled) return null;
  return (
    <div class="legend">
      {names.length > 1 &&
        names.map((name, index) => (
          <span key={name}>
            <i class={`swatch s${index + 1}`} />
            {name}
          </span>
        ))}
      {others > 0 && (
        <span class="muted">
          the {names.length} largest of {count(names.length + others)}
        </span>
      )}
      {settled && (
        <span class="muted">
          <i class="swatch open" />
          after the watermark
        </span>
      )}
    </div>
  );
}

export function BarChart({ of }: { of: Pick<Bars, "bars" | "others"> }) {
  const most = Math.max(...of.bars.map((bar) => Math.abs(bar.value)), 1e-9);
  return (
    <figure>
      <dl class="bars">
        {of.bars.map((bar) => [
          <dt class="ellipsis" key={`${bar.name}:`} title={bar.name}>
            {bar.name}
          </dt>,
          <dd class="track" key={bar.name} aria-hidden="true">
            <i style={{ width: `${(100 * Math.abs(bar.value)) / most}%` }} />
          </dd>,
          <dd class="num right" key={`${bar.name}=`}>
            {cell(bar.cell)}
          </dd>,
        ])}
      </dl>
      {of.others > 0 && (
        <figcaption class="muted small">
          the {of.bars.length} largest of {count(of.bars.length + of.others)}
        </figcaption>
      )}
    </figure>
  );
}

export function FigureList({ of }: { of: Figures }) {
  return (
    <dl class="figures">
      {of.figures.map(({ name, value }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{cell(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Spark({
  values,
  label,
  height = 28,
}: {
  values: readonly number[];
  label: string;
  height?: number;
}) {
  const most = Math.max(...values, 1e-9);
  const step = values.length > 1 ? 100 / (values.length - 1) : 100;
  const path = values.map(
    (value, index) =>
      `${index ? "L" : "M"}${(index * step).toFixed(2)} ${(29 - 28 * (value / most)).toFixed(2)}`,
  );
  return (
    <svg
      class="spark"
      viewBox="0 0 100 30"
      preserveAspectRatio="none"
      height={height}
      role="img"
      aria-label={label}
    >
      <path d={path.join("")} />
    </svg>
  );
}
