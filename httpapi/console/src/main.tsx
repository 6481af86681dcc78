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
for (const later of ["rightclick", "palette"])
  void import(new URL(`./${later}.js`, import.meta.url).href).catch(() => {
    /* it is asked for again when it is used */
  });
