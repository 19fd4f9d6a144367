import { render } from "preact";
import { App } from "./app";
import { startTheme } from "./ui/theme";
import "./style.css";

startTheme();
render(<App />, document.getElementById("app")!);
