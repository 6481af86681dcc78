// Preact with hooks, the names that React's users expect, and signals.
export * from "preact/hooks";
export * from "@preact/signals";
export { h, createElement, Fragment, render, createContext, cloneElement, createRef, isValidElement, toChildArray, Component, options } from "preact";
export { memo, forwardRef, createPortal, lazy, Suspense, flushSync, startTransition, Children, PureComponent, StrictMode } from "preact/compat";
export { jsx, jsxs, jsxDEV } from "preact/jsx-runtime";
export { default } from "preact/compat";
