export default function Spend(_: { id?: string }) { return null; }
