export { default } from "@dagrejs/dagre";
