// The forms of the calendar, whose files are loaded when one is first opened.
import { later, whenIdle } from "../../parts/later";

export const AddDialog = later(
  () => import("./add").then((m) => m.AddDialog),
  () => null,
);
export const TaskForm = later(
  () => import("./add").then((m) => m.TaskForm),
  () => null,
);
export const ScheduleForm = later(
  () => import("./add").then((m) => m.ScheduleForm),
  () => null,
);

whenIdle(() => {
  AddDialog.preload().catch(() => {
    /* the form says so when it is opened */
  });
});
