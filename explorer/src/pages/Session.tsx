export default function Session(_: { id?: string }) { return null; }
