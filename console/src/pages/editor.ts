/** The SQL editor, a bundle of its own because CodeMirror is larger than the rest of the console.
 *
 * It is in a shadow root: there CodeMirror adds its styles as objects and not as inline text, which
 * the server's content security policy rejects.
 */

import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import {
  keywordCompletionSource,
  SQLDialect,
  type SQLNamespace,
  schemaCompletionSource,
  sql,
} from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
  placeholder,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { columnsIn } from "../completion";
import type { Catalog } from "../wire";

export interface Editor {
  text(): string;
  setText(text: string): void;
  setCatalog(catalog: Catalog): void;
  focus(): void;
  destroy(): void;
}

const LOOK = EditorView.theme({
  "&": {
    fontSize: "13px",
    backgroundColor: "var(--surface)",
    color: "var(--ink)",
    minHeight: "160px",
    maxHeight: "46vh",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": {
    fontFamily: "var(--mono)",
    lineHeight: "1.65",
    overflow: "auto",
    minHeight: "160px",
  },
  ".cm-content": { caretColor: "var(--accent)", padding: "10px 0" },
  ".cm-gutters": {
    backgroundColor: "var(--surface)",
    color: "var(--ink-3)",
    border: "none",
    paddingLeft: "6px",
  },
  ".cm-activeLine, .cm-activeLineGutter": {
    backgroundColor: "color-mix(in srgb, var(--sunken) 70%, transparent)",
  },
  ".cm-cursor": { borderLeftColor: "var(--accent)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--accent) 24%, transparent) !important",
  },
  ".cm-placeholder": { color: "var(--ink-3)" },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-soft) !important" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    border: "1px solid var(--line)",
    borderRadius: "8px",
    boxShadow: "var(--shadow)",
    overflow: "hidden",
  },
  ".cm-tooltip-autocomplete ul": {
    fontFamily: "var(--mono) !important",
    maxHeight: "16em !important",
  },
  ".cm-tooltip-autocomplete ul li": { padding: "3px 10px !important", color: "var(--ink)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent-soft) !important",
    color: "var(--accent) !important",
  },
  ".cm-completionDetail": { color: "var(--ink-3)", fontStyle: "normal" },
});

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "560" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--ok)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: tags.comment, color: "var(--ink-3)", fontStyle: "italic" },
  { tag: tags.typeName, color: "var(--ink-2)" },
]);

export function makeEditor(
  host: HTMLElement,
  text: string,
  on: { run: () => void; change: (text: string) => void },
): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const language = new Compartment();
  const runs = () => {
    on.run();
    return true;
  };
  const run = Prec.highest(keymap.of([{ key: "Mod-Enter", run: runs }]));
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        run,
        lineNumbers(),
        history(),
        drawSelection(),
        highlightActiveLine(),
        bracketMatching(),
        closeBrackets(),
        EditorView.lineWrapping,
        placeholder("SELECT …"),
        syntaxHighlighting(COLOURS),
        LOOK,
        keymap.of([
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...historyKeymap,
          ...completionKeymap,
        ]),
        EditorView.contentAttributes.of({ "aria-label": "SQL" }),
        EditorView.updateListener.of(
          (update) => update.docChanged && on.change(update.state.doc.toString()),
        ),
        language.of([sql(), autocompletion()]),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    setText: (next) =>
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    setCatalog: (catalog) => view.dispatch({ effects: language.reconfigure(completing(catalog)) }),
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

function completing(catalog: Catalog) {
  const words = catalog.keywords.map((word) => word.toLowerCase()).join(" ");
  const dialect = SQLDialect.define({
    keywords: words,
    doubleQuotedStrings: false,
    types: "string bigint int double boolean timestamp date decimal",
    builtin: "",
  });
  const schema: SQLNamespace = {};
  for (const one of [...catalog.streams, ...catalog.tables, ...catalog.views]) {
    (schema as Record<string, unknown>)[one.name] = one.columns.map((column) => ({
      label: column.name,
      type: "property",
      detail: column.type ?? "",
    }));
  }
  const functions = catalog.functions.map((one) => ({
    label: one.name,
    type: "function",
    detail: one.kind,
    apply: `${one.name}(`,
  }));
  return [
    dialect.language,
    autocompletion({
      override: [
        schemaCompletionSource({ dialect, schema }),
        keywordCompletionSource(dialect, true),
        (context) => {
          const word = context.matchBefore(/\w+/);
          const from = word?.from ?? context.pos;
          // After a dot, the schema completes the columns of the relation before it.
          if (context.state.sliceDoc(from - 1, from) === "." || !(word || context.explicit))
            return null;
          const options = columnsIn(context.state.doc.toString(), catalog);
          return { from, options, validFor: /^\w*$/ };
        },
        (context) => {
          const word = context.matchBefore(/\w+/);
          return word || context.explicit
            ? { from: word?.from ?? context.pos, options: functions, validFor: /^\w*$/ }
            : null;
        },
      ],
    }),
  ];
}
