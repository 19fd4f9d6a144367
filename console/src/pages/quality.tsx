export function QualityPage() {
  return null;
}
