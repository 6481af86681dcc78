// Credentials: keys and sign-ins for services, which are only ever sent to their own hosts.
import { go, invalidate, mayEdit, route, setQuery, useQuery, type API } from "../data";
import { Button, Empty, Icon, LinkButton, Load, Name, Pager, plural, SearchField } from "../ui";
import { connect } from "../parts/connect";
import { useFollow } from "../parts/follow";
import { style } from "../parts/styles";
import { CredentialPage } from "./credentials/credential";
import { Editor } from "./credentials/editor";
import { credentialsAt, credentialsHref } from "./credentials/paths";
import { Gallery, PresetForm } from "./credentials/presets";
import { confirmUse, CredentialState, typeTitle } from "./credentials/state";
import "../css/credentials.css";

export const styles = style("./credentials.css");

/** The page of credentials: the list, a new credential, or the one of the address. */
export default function Credentials() {
  const [id, preset] = route.value.rest;
  if (id === "new") return <NewCredential key={preset} preset={preset} />;
  return id ? <CredentialPage key={id} id={id} /> : <CredentialList />;
}

function CredentialList() {
  const { query } = route.value;
  const search = query.get("q") ?? "";
  const offset = Number(query.get("offset")) || 0;
  const found = useQuery(credentialsAt(), { search, limit: 50, offset });
  useFollow("credential", found.reload);
  const searchable = search !== "" || (found.data.value?.meta.total ?? 0) > 0;
  const add = mayEdit.value && (
    <LinkButton kind="primary" icon="Plus" href={credentialsHref("new")}>
      Add credential
    </LinkButton>
  );
  return (
    <div class="page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Credentials
        </h1>
        {searchable && (
          <SearchField label="Search credentials" value={search} onInput={(q) => setQuery({ q, offset: null })} />
        )}
        {add}
      </div>
      <Load of={found}>
        {({ credentials, meta }) => {
          if (!credentials.length && search)
            return (
              <Empty icon="Search" title="No credentials match">
                Try different words.
              </Empty>
            );
          if (!credentials.length)
            return (
              <Empty icon="KeyRound" title="No credentials yet" action={add}>
                A credential is a key or sign-in for a service. Nodes, tools, APIs, sources and MCP servers use it by
                name; it is only ever sent to its own hosts.
              </Empty>
            );
          return (
            <>
              <ul class="sources">
                {credentials.map((credential) => (
                  <CredentialRow key={credential.id} credential={credential} />
                ))}
              </ul>
              <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

function CredentialRow({ credential }: { credential: API.Credential }) {
  const { id, name, hosts, used_by, account, last_error, status } = credential;
  return (
    <li class="source-row">
      <span class="tile">
        <Icon name="KeyRound" />
      </span>
      <div class="grow">
        <a href={credentialsHref(id)}>
          <Name>{name}</Name>
        </a>
        <p class="muted small clip">
          {typeTitle(credential)}
          {hosts.length > 0 && (
            <>
              {" "}
              · <bdi>{hosts.join(", ")}</bdi>
            </>
          )}{" "}
          · {used_by.length ? `used in ${plural(used_by.length, "place")}` : "not used"}
          {account && (
            <>
              {" "}
              · <Name>{account}</Name>
            </>
          )}
        </p>
        {last_error && (
          <p class="issue small">
            <bdi>{last_error}</bdi>
          </p>
        )}
      </div>
      <CredentialState status={status} />
      {mayEdit.value && status === "needs_login" && <Button onClick={() => connect(credential)}>Connect</Button>}
      {mayEdit.value && status === "needs_confirm" && <Button onClick={() => confirmUse(credential)}>Confirm</Button>}
    </li>
  );
}

/** Adds a credential: the gallery of services, the form of one, or the form with all fields. */
function NewCredential({ preset }: { preset?: string }) {
  if (!mayEdit.value)
    return (
      <div class="page">
        <Empty icon="Eye" title="Read-only access">
          Adding credentials needs the admin role.
        </Empty>
      </div>
    );
  return (
    <div class="page">
      <p class="crumb">
        <a href={credentialsHref()}>Credentials</a>
        {preset && (
          <>
            {" "}
            / <a href={credentialsHref("new")}>Add</a>
          </>
        )}
      </p>
      <NewCredentialForm preset={preset} />
    </div>
  );
}

function openCreated(credential: API.Credential) {
  invalidate(credentialsAt());
  go(credentialsHref(credential.id), true);
  if (credential.status === "needs_login") void connect(credential);
}

function NewCredentialForm({ preset }: { preset?: string }) {
  const galleryHref = credentialsHref("new");
  if (!preset) return <Gallery href={(id) => credentialsHref("new", id)} />;
  if (preset !== "custom") return <PresetForm id={preset} saved={openCreated} cancel={galleryHref} />;
  return (
    <>
      <h1 tabIndex={-1}>Another service</h1>
      <Editor saved={openCreated} cancel={galleryHref} />
    </>
  );
}
