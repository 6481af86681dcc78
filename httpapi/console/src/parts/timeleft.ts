import { plural } from "../ui";

/** How long something still takes, in words; "" if it is not known. */
export function timeLeft(seconds?: number | null): string {
  if (seconds === undefined || seconds === null) return "";
  if (seconds < 60) return "less than a minute left";
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `about ${plural(minutes, "minute")} left`;
  return `about ${Math.round(minutes / 60)} hours left`;
}
