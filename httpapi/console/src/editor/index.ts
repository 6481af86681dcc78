// What the editor and executions share: graphs, the types of their nodes, and
// the parts that are loaded later. It is one file, which comes with the page.
export * from "./catalog";
export * from "./graph";
export * from "./layout";
export * from "./names";
export * from "./components";
export * from "./run";
export * from "./state";
export * from "./zone";
