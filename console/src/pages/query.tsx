export function QueryPage() {
  return null;
}
