export default function Timeline(_: { id?: string }) { return null; }
