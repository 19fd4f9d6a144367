export function LineagePage() {
  return null;
}
