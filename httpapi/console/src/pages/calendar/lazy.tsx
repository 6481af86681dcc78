// The forms of the calendar, whose files are loaded when one is first opened.
import { lazy, whenIdle } from "../../parts/lazy";

export const AddDialog = lazy(
  () => import("./add").then((m) => m.AddDialog),
  () => null,
);
export const TaskForm = lazy(
  () => import("./add").then((m) => m.TaskForm),
  () => null,
);
export const ScheduleForm = lazy(
  () => import("./add").then((m) => m.ScheduleForm),
  () => null,
);

whenIdle(() => {
  AddDialog.preload().catch(() => {
    /* the form says so when it is opened */
  });
});
