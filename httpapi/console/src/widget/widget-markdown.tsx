// The Markdown of answers, loaded with the first of them.
export { Markdown } from "../parts/markdown";
