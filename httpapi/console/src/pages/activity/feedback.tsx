// Answers that people rated, with what they said about them.
import { agentId, href, path, route, setQuery, useQuery, type API } from "../../data";
import { Badge, Empty, Icon, Load, Moment, Name, Pager, SearchField, Table, unmarked, type Column } from "../../ui";
import { ExportMenu, pagesOf } from "../../parts/export";
import { useFollow } from "../../parts/follow";
import { TimeRange } from "./filters";

const ratings: [string, string][] = [
  ["", "All ratings"],
  ["good", "Good answers"],
  ["bad", "Bad answers"],
];

/** The address of a rated answer in its conversation. */
const answerHref = ({ gateway_id, conversation_id, message_id }: API.RatedAnswer) =>
  gateway_id
    ? href(agentId.value, "inbox", conversation_id)
    : `${href(agentId.value, "chat", conversation_id)}?message=${message_id}`;

function Rating({ rating }: { rating: number }) {
  if (!rating) return <Badge>no rating</Badge>;
  const good = rating > 0;
  return (
    <Badge tone={good ? "good" : "bad"}>
      <Icon name={good ? "ThumbsUp" : "ThumbsDown"} size={14} /> {good ? "Good" : "Bad"}
    </Badge>
  );
}

const feedbackAt = () => path("agents", agentId.value, "feedback");

/** What the address asks for. */
function listOptions() {
  const { query } = route.value;
  const [rating, search, from, to] = ["rating", "q", "from", "to"].map((name) => query.get(name) ?? "");
  return { filters: { rating, search, from, to }, offset: Number(query.get("offset")) || 0 };
}

type Filters = ReturnType<typeof listOptions>["filters"];

/** Yields all rated answers that match filters, page by page. */
const allFeedback = (filters: Filters) => pagesOf(feedbackAt(), filters, (page) => page.feedback);

/** The tab of feedback. */
export function Feedback() {
  const { filters, offset } = listOptions();
  const found = useQuery(feedbackAt(), { ...filters, limit: 50, offset });
  useFollow("message", found.reload);
  const filtered = Object.values(filters).some(Boolean);
  return (
    <>
      <FilterRow filters={filters} />
      <Load of={found} lines={8}>
        {({ feedback, meta }) => {
          if (!feedback.length)
            return (
              <Empty icon="ThumbsUp" title={filtered ? "No feedback matches" : "No feedback yet"}>
                Answers rated in Chat are listed here, with their comments.
              </Empty>
            );
          return (
            <>
              <div class="activity-table">
                <Table rows={feedback} keyOf={({ message_id }) => message_id} open={answerHref} columns={columns} />
              </div>
              <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
            </>
          );
        }}
      </Load>
    </>
  );
}

function FilterRow({ filters }: { filters: Filters }) {
  const { rating, search, from, to } = filters;
  return (
    <div class="row filters" role="search">
      <select
        aria-label="Rating"
        value={rating}
        onChange={(e) => setQuery({ rating: e.currentTarget.value, offset: null })}
      >
        {ratings.map(([value, title]) => (
          <option value={value} selected={value === rating}>
            {title}
          </option>
        ))}
      </select>
      <SearchField
        value={search}
        label="Search feedback"
        placeholder="Search feedback"
        onInput={(q) => setQuery({ q, offset: null })}
      />
      <TimeRange from={from} to={to} />
      <span class="row nowrap filters-end">
        <ExportMenu name="feedback" pages={() => allFeedback(filters)} />
      </span>
    </div>
  );
}

const columns: Column<API.RatedAnswer>[] = [
  { title: "Answered", cell: ({ created_at }) => <Moment time={created_at} /> },
  { title: "Rating", cell: ({ rating }) => <Rating rating={rating} /> },
  { title: "Answer", cell: (rated) => <RatedAnswer rated={rated} /> },
  {
    title: "Comment",
    cell: ({ comment }) => (comment ? <bdi class="comment">{comment}</bdi> : <span class="muted">–</span>),
  },
];

function RatedAnswer({ rated }: { rated: API.RatedAnswer }) {
  const { question, answer, contact_name, model } = rated;
  return (
    <div class="rated">
      <a href={answerHref(rated)}>
        <Name>{question || "Open conversation"}</Name>
      </a>
      <bdi class="about muted">{unmarked(answer)}</bdi>
      <span class="muted small">
        {contact_name && (
          <>
            <Name>{contact_name}</Name>
            {model && " · "}
          </>
        )}
        {model}
      </span>
    </div>
  );
}
