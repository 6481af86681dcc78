// A search in all sources; the query is in the address.
import { Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";

import { agentId, go, href, mayEdit, route, setQuery, useQuery, type API, type Result } from "../../data";
import { Button, Empty, ErrorCard, Name, Skeleton } from "../../ui";
import { Highlighted } from "../../parts/highlight";
import { sourcesAt } from "./paths";

/** What the address asks for. */
function searchOptions() {
  const { query } = route.value;
  return { query: query.get("q") ?? "", mode: query.get("mode") ?? "hybrid", minScore: query.get("min") ?? "" };
}

/** The search bar, and the passages that were found. */
export function Search() {
  const { query, mode, minScore } = searchOptions();
  const found = useQuery<API.SearchAnswer>(query ? sourcesAt("search") : null, {
    query,
    mode,
    min_score: minScore,
    limit: 20,
  });
  return (
    <section class="stack" aria-label="Search">
      <SearchBar />
      {query && <Outcome found={found} />}
    </section>
  );
}

function SearchBar() {
  const { query, mode, minScore } = searchOptions();
  const [text, setText] = useState(query);
  useEffect(() => {
    setText(query);
  }, [query]);
  return (
    <form
      class="row search-bar"
      role="search"
      onSubmit={(e) => {
        e.preventDefault();
        setQuery({ q: text.trim() });
      }}
    >
      <input
        type="search"
        class="grow"
        data-search
        placeholder="Search by meaning and words"
        aria-label="Search for"
        value={text}
        onInput={(e) => {
          setText(e.currentTarget.value);
          if (!e.currentTarget.value) setQuery({ q: null });
        }}
      />
      {query && <SearchOptions mode={mode} minScore={minScore} />}
      <Button kind="primary" submit icon="Search">
        Search
      </Button>
      {query && mayEdit.value && (
        <Button
          icon="MessageSquare"
          onClick={() => {
            sessionStorage.setItem("satchel.ask", query);
            go(href(agentId.value, "chat"));
          }}
        >
          Ask in chat
        </Button>
      )}
    </form>
  );
}

function SearchOptions({ mode, minScore }: { mode: string; minScore: string }) {
  return (
    <>
      <select
        aria-label="Search mode"
        value={mode}
        onChange={(e) => setQuery({ mode: e.currentTarget.value === "hybrid" ? null : e.currentTarget.value })}
      >
        <option value="hybrid">Meaning and words</option>
        <option value="vector">Meaning</option>
        <option value="keyword">Words</option>
      </select>
      <label class="row nowrap small" title="Hide passages with a lower score, from 0 to 1">
        Min. score{" "}
        <input
          type="number"
          class="min-score"
          min="0"
          max="1"
          step="0.05"
          aria-label="Least score"
          value={minScore}
          onChange={(e) => setQuery({ min: e.currentTarget.value })}
        />
      </label>
    </>
  );
}

function Outcome({ found }: { found: Result<API.SearchAnswer> }) {
  const answer = found.data.value;
  if (!answer && found.error.value) return <ErrorCard error={found.error.value} retry={found.reload} />;
  if (!answer) return <Skeleton lines={6} />;
  if (answer.results.length) return <Results hits={answer.results} scored={answer.mode !== "keyword"} />;
  return (
    <Empty icon="Search" title="No results">
      {searchOptions().minScore ? (
        "A lower minimum score finds more."
      ) : (
        <>
          Try different words, or look at <a href={href(agentId.value, "knowledge")}>the sources</a>.
        </>
      )}
    </Empty>
  );
}

/** Passages with a lower score seldom answer a question. */
const weakScore = 0.3;

/** The passages that were found; a line separates weak ones, where they have scores. */
function Results({ hits, scored }: { hits: API.SearchHit[]; scored: boolean }) {
  const firstWeak = scored ? hits.findIndex(({ score }) => score < weakScore) : -1;
  const notice =
    firstWeak === 0
      ? "Nothing in the knowledge matches this well. The nearest passages:"
      : "Weak matches that Chat doesn't use";
  return (
    <ol class="results">
      {hits.map((hit, index) => (
        <Fragment key={hit.id}>
          {index === firstWeak && <li class="muted weak">{notice}</li>}
          <Passage hit={hit} number={index + 1} />
        </Fragment>
      ))}
    </ol>
  );
}

const excerptLength = 400;

function Passage({ hit, number }: { hit: API.SearchHit; number: number }) {
  const [open, setOpen] = useState(false);
  const { id, source_id, metadata, score, content, matches, best_sentence } = hit;
  return (
    <li class="card stack">
      <div class="row nowrap">
        <b class="cite">{number}</b>
        <span class="grow passage-place">
          <a href={`${href(agentId.value, "knowledge", source_id)}?chunk=${id}`}>
            <Name>{metadata.source_name}</Name>
          </a>{" "}
          <span class="muted small">
            <bdi>{metadata.place}</bdi>
          </span>
        </span>
        <span class="score" title="Estimated probability that the passage answers the question">
          <i style={{ width: `${Math.round(score * 100)}%` }} />
        </span>
        <span class="small muted">{score.toFixed(2)}</span>
      </div>
      <p class={open ? "passage-full" : "passage-text"}>
        <Highlighted text={content} ranges={matches} best={best_sentence} excerpt={!open} />
      </p>
      {content.length > excerptLength && (
        <button type="button" class="link" onClick={() => setOpen(!open)}>
          {open ? "Less" : "More"}
        </button>
      )}
    </li>
  );
}
