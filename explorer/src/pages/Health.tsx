export default function Health(_: { id?: string }) { return null; }
