export default function Ask(_: { id?: string }) { return null; }
