export * from "./api";
export * from "./route";
export * from "./query";
export * from "./live";
export * from "./drafts";
export * from "./session";
export * from "./uploads";
export type * as API from "./types";
