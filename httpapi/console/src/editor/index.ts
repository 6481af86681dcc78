// What the editor and executions share: graphs, the types of their nodes, and the components that
// are loaded later. It is in the file of the page.
export * from "./catalog";
export * from "./graph";
export * from "./layout";
export * from "./names";
export * from "./components";
export * from "./run";
export * from "./selection";
export * from "./state";
export * from "./viewsegments";
export * from "./zone";
