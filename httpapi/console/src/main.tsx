// The console's first file: what pages share, and the frame around them.
import { render } from "preact";

import { expireDrafts, invalidate, onReset, startLive } from "./data";
import { Shell } from "./shell/shell";
import "./css/main.css";

export * from "./data";
export * from "./ui";

expireDrafts();
startLive();
onReset(() => invalidate("")); // changes may have been missed
render(<Shell />, document.getElementById("app")!);
void import(new URL("./rightclick.js", import.meta.url).href);
