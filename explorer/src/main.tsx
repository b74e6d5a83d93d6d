import "@fontsource-variable/inter/wght.css";
import { createRoot } from "react-dom/client";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/parts.css";
import { App } from "./App";
import { applyTheme } from "./theme";

applyTheme();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
