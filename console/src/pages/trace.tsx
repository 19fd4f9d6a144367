/** The trace of one event: log, epoch, master, generation, rows, alerts. */

import type { ComponentChildren } from "preact";
import { api } from "../api";
import { cell, duration, isWindow, moment } from "../format";
import { pretty } from "../json";
import { link } from "../routes";
import { useAsked } from "../ui/hooks";
import { Ago, Badge, Code, Dialog, Notice, Waiting } from "../ui/parts";

export function TracePanel({
  stream,
  partition,
  offset,
  onClose,
}: {
  stream: string;
  partition: number;
  offset: number;
  onClose: () => void;
}) {
  const { value, problem } = useAsked(
    () => api.ask("event", { stream, partition, offset }),
    [stream, partition, offset],
  );
  const event = value?.event;
  return (
    <Dialog title={`Event ${partition}/${offset} of ${stream}`} kind="side" onClose={onClose}>
      {problem && <Notice of={problem} />}
      {!value && !problem && <Waiting what="Following it" />}
      {value && event && (
        <>
          <div class="row">
            <Badge
              tone={event.status === "event" ? "ok" : event.status === "duplicate" ? "warn" : "bad"}
            >
              {event.status.replace("_", " ")}
            </Badge>
            {event.late && <Badge tone="warn">late by {duration(event.lateness_ms)}</Badge>}
            {event.id && (
              <span class="muted small">
                id <code>{event.id}</code>
              </span>
            )}
            {event.key && (
              <span class="muted small">
                key <code>{event.key}</code>
              </span>
            )}
          </div>
          {event.reason && <Notice of={event.reason} />}
          <ol class="steps">
            <Stop title="It arrived and was synced to the log">
              <Ago at={event.arrived_at} />
              {event.event_time && <>, dated {moment(event.event_time)}</>}
            </Stop>
            <Stop
              title={
                value.epoch
                  ? `Epoch ${value.epoch.number} processed it`
                  : "No epoch is known that has processed it"
              }
              waits={!value.epoch}
            >
              {value.epoch ? (
                <Ago at={value.epoch.committed_at} />
              ) : event.status === "event" ? (
                "speed has not committed it yet, or its epoch is not stored any more"
              ) : (
                "only events are processed"
              )}
            </Stop>
            <Stop
              title={value.archived ? "It is in the master dataset" : "It waits to be archived"}
              waits={!value.archived}
            />
            <Stop
              title={
                value.generation
                  ? `Generation ${value.generation.number} includes it`
                  : "It waits for the next generation"
              }
              waits={!value.generation}
            >
              {value.generation && <Ago at={value.generation.committed_at} />}
            </Stop>
          </ol>
          {value.views.length > 0 && (
            <section class="stack tight">
              <h2>Rows that include it</h2>
              {value.views.map((one, index) => (
                <div class="notice" key={index}>
                  <div class="grow">
                    <p>
                      <a href={link("views", one.view)}>{one.view}</a>{" "}
                      {one.key && (
                        <span class="muted">{Object.values(one.key).map(cell).join(" · ")}</span>
                      )}
                    </p>
                    {one.row && (
                      <p class="mono">
                        {Object.entries(one.row)
                          .filter(([name, of]) => !isWindow(of) && !(one.key && name in one.key))
                          .map(([name, of]) => `${name} ${cell(of)}`)
                          .join("  ")}
                      </p>
                    )}
                    {one.reason && <p class="muted small">{one.reason}</p>}
                  </div>
                </div>
              ))}
            </section>
          )}
          {value.alerts.length > 0 && (
            <section class="stack tight">
              <h2>Alerts</h2>
              {value.alerts.map((alert) => (
                <p key={alert.id}>
                  <a href={link("alerts", null, { rule: alert.rule, state: "all" })}>
                    {alert.rule}
                  </a>{" "}
                  <span class="muted">
                    {alert.state}, <Ago at={alert.raised_at} />
                  </span>
                </p>
              ))}
            </section>
          )}
          <section class="stack tight">
            <h2>As it was received</h2>
            <Code text={pretty(event.raw)} wrap />
          </section>
        </>
      )}
    </Dialog>
  );
}

function Stop({
  title,
  waits,
  children,
}: {
  title: string;
  waits?: boolean;
  children?: ComponentChildren;
}) {
  return (
    <li class={waits ? "waits" : undefined}>
      <div>
        <p>{title}</p>
        {children && <p class="muted small">{children}</p>}
      </div>
    </li>
  );
}
