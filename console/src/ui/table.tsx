/** Tables, and the rows of an answer as a table. */

import type { ComponentChildren } from "preact";
import type { Row } from "../api";
import { cell, percent } from "../format";
import { NUMERIC } from "../plot";
import { ROWS_MAX } from "../reading";
import type { Answer, ColumnInfo } from "../wire";

export interface ColumnOf<T> {
  name: string;
  show: (item: T) => ComponentChildren;
  right?: boolean;
  mono?: boolean;
  clip?: boolean;
  fill?: boolean; // takes the remaining width, and is truncated
}

export function Table<T>({
  columns,
  of,
  keyOf,
  onPress,
  chosen,
  label,
  scroll,
}: {
  columns: ColumnOf<T>[];
  of: readonly T[];
  keyOf: (item: T, index: number) => string | number;
  onPress?: (item: T) => void;
  chosen?: (item: T) => boolean;
  label: string;
  scroll?: boolean;
}) {
  const kind = (column: ColumnOf<T>) =>
    [
      column.right && "right",
      column.mono && "mono",
      column.clip && "clip",
      column.fill && "clip fill",
    ]
      .filter(Boolean)
      .join(" ") || undefined;
  const table = (
    <table class="table">
      <caption class="hidden-visually">{label}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th scope="col" class={column.right ? "right" : undefined} key={column.name}>
              {column.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {of.map((item, index) => (
          <tr
            key={keyOf(item, index)}
            class={
              [onPress && "press", chosen?.(item) && "chosen"].filter(Boolean).join(" ") ||
              undefined
            }
            tabIndex={onPress ? 0 : undefined}
            onClick={onPress && (() => onPress(item))}
            onKeyDown={
              onPress &&
              ((event) => {
                if (event.key === "Enter") onPress(item);
              })
            }
          >
            {columns.map((column) => (
              <td class={kind(column)} key={column.name}>
                {column.show(item)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
  if (!scroll) return <div>{table}</div>;
  return (
    <section class="table-scroll" tabIndex={0} aria-label={label}>
      {table}
    </section>
  );
}

/** The rows of an answer; the header of an estimated column shows its error. */
export function Rows({
  answer,
  onPress,
  label,
  most = ROWS_MAX,
}: {
  answer: Pick<Answer, "columns" | "rows">;
  onPress?: (row: Row) => void;
  label: string;
  most?: number;
}) {
  const names = Object.keys(answer.columns);
  const shown = answer.rows.slice(0, most);
  const columns: ColumnOf<Row>[] = names.map((name) => ({
    name: heading(name, answer.columns[name]!),
    right: NUMERIC.test(answer.columns[name]!.type),
    clip: true,
    show: (row) => <span title={row[name] === null ? "NULL" : undefined}>{cell(row[name])}</span>,
  }));
  return (
    <Table
      columns={columns}
      of={shown}
      keyOf={(_, index) => index}
      onPress={onPress}
      label={label}
      scroll
    />
  );
}

function heading(name: string, info: ColumnInfo): string {
  return info.exact ? name : `${name} ±${info.error ? percent(info.error) : ""}`;
}
