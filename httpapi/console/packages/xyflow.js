export * from "@xyflow/react";
import "@xyflow/react/dist/base.css";
