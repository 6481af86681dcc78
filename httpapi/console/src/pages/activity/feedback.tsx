// Answers that people rated, with what they said about them.
import { agentId, get, href, path, route, setQuery, useQuery, type API } from "../../data";
import { Badge, Empty, Icon, Load, Moment, Name, Pager, SearchField, Table, unmarked } from "../../ui";
import { ExportMenu } from "../../parts/export";
import { useFollow } from "../../parts/follow";
import { TimeRange } from "./filters";

const ratings: [string, string][] = [
  ["", "All ratings"],
  ["good", "Good answers"],
  ["bad", "Bad answers"],
];

/** The conversation of an answer, at that answer. */
const placeOf = (a: API.RatedAnswer) =>
  a.gateway_id
    ? href(agentId.value, "inbox", a.conversation_id)
    : `${href(agentId.value, "chat", a.conversation_id)}?message=${a.message_id}`;

const Rating = ({ a }: { a: API.RatedAnswer }) =>
  a.rating ? (
    <Badge tone={a.rating > 0 ? "good" : "bad"}>
      <Icon name={a.rating > 0 ? "ThumbsUp" : "ThumbsDown"} size={14} /> {a.rating > 0 ? "Good" : "Bad"}
    </Badge>
  ) : (
    <Badge>no rating</Badge>
  );

export function Feedback() {
  const { query } = route.value;
  const [rating, search, from, to] = ["rating", "q", "from", "to"].map((n) => query.get(n) ?? "");
  const offset = Number(query.get("offset")) || 0;
  const at = path("agents", agentId.value, "feedback");
  const filters = { rating, search, from, to };
  const found = useQuery(at, { ...filters, limit: 50, offset });
  useFollow("message", found.reload);
  async function* pages() {
    for (let start = 0, more = true; more; start += 200) {
      const page = await get(at, { ...filters, limit: 200, offset: start });
      yield page.feedback;
      more = start + 200 < page.meta.total;
    }
  }
  return (
    <>
      <div class="row filters" role="search">
        <select
          aria-label="Rating"
          value={rating}
          onChange={(e) => setQuery({ rating: e.currentTarget.value, offset: null })}
        >
          {ratings.map(([v, t]) => (
            <option value={v} selected={v === rating}>
              {t}
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
          <ExportMenu name="feedback" pages={pages} />
        </span>
      </div>
      <Load of={found} lines={8}>
        {({ feedback, meta }) =>
          feedback.length ? (
            <>
              <div class="activity-table">
                <Table
                  rows={feedback}
                  keyOf={(a) => a.message_id}
                  open={placeOf}
                  columns={[
                    { title: "Answered", cell: (a) => <Moment time={a.created_at} /> },
                    { title: "Rating", cell: (a) => <Rating a={a} /> },
                    {
                      title: "Answer",
                      cell: (a) => (
                        <div class="rated">
                          <a href={placeOf(a)}>
                            <Name>{a.question || "Open conversation"}</Name>
                          </a>
                          <bdi class="about muted">{unmarked(a.answer)}</bdi>
                          <span class="muted small">
                            {a.contact_name && (
                              <>
                                <Name>{a.contact_name}</Name>
                                {a.model && " · "}
                              </>
                            )}
                            {a.model}
                          </span>
                        </div>
                      ),
                    },
                    {
                      title: "Comment",
                      cell: (a) => (a.comment ? <bdi class="comment">{a.comment}</bdi> : <span class="muted">–</span>),
                    },
                  ]}
                />
              </div>
              <Pager meta={meta} go={(o) => setQuery({ offset: o || null })} />
            </>
          ) : (
            <Empty icon="ThumbsUp" title={rating || search || from || to ? "No feedback matches" : "No feedback yet"}>
              Answers rated in Chat are listed here, with their comments.
            </Empty>
          )
        }
      </Load>
    </>
  );
}
