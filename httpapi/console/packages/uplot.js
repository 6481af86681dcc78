export { default } from "uplot";
import "uplot/dist/uPlot.min.css";
