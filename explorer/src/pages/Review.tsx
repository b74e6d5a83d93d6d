export default function Review(_: { id?: string }) { return null; }
