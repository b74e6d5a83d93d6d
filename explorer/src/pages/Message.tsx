export default function Message(_: { id?: string }) { return null; }
