/** The routes of the server, by its OpenAPI document: a project has the route PROJECT, a server of jobs
 *  has /v1/jobs. Pages without their route are not shown.
 */

import { api } from "./api";
import { PAGES, type Page, PROJECT } from "./routes";
import { store } from "./store";

export const paths = store<ReadonlySet<string>>(new Set());

export async function learn(): Promise<void> {
  try {
    paths.set(new Set(Object.keys((await api.openapi()).paths)));
  } catch {
    // A job that is not running does not return its routes, and is still a project.
    paths.set(new Set([PROJECT]));
  }
}

export const pagesOf = (known: ReadonlySet<string>): readonly Page[] =>
  PAGES.filter((page) => known.has(page.needs));
export const isProject = (known: ReadonlySet<string>): boolean => known.has(PROJECT);
