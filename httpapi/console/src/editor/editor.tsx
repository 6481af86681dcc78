// The editor of one workflow.
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import {
  agentId,
  type API,
  ApiError,
  asError,
  get,
  go,
  href,
  mayEdit,
  onChange,
  path,
  post,
  put,
  route,
  setQuery,
} from "../data";
import {
  Badge,
  Button,
  ErrorCard,
  Icon,
  Menu,
  Name,
  openDialog,
  Segments,
  Skeleton,
  tell,
  When,
  type MenuItem,
} from "../ui";
import type { CanvasActions, Flow } from "./canvas";
import {
  Canvas,
  copyText,
  type Doc,
  DraftOffer,
  Editor,
  fingerprint,
  GraphJson,
  loadCatalog,
  NodePanel,
  NodeShelf,
  type NodeType,
  Outline,
  placed,
  type Preview,
  readCopy,
  readExecution,
  readGraph,
  removeFrom,
  TestPanel,
  tidy,
  typeOf,
  Versions,
  wayOf,
  waysOut,
  writeGraph,
  zone,
} from "./base";
import { dropDraft, type Draft, openDraft, readDraft } from "./drafts";
import { editorKeys } from "./keys";
import { issuesOf, Problems } from "./problems";
import type { TestMode, TestState } from "./starttest";
import { Execute } from "../workflows/execute";
import { whenIdle } from "../parts/later";
import { Others } from "../parts/presence";

export { copyText, namesOf, readCopy, readGraph, removeFrom, tidy, writeGraph } from "./base";

/** The smaller dialogs of the editor. */
const more = () => import("./more");
const openMore = (dialog: (parts: Awaited<ReturnType<typeof more>>, close: () => void) => VNode) =>
  more().then((parts) => {
    openDialog((close) => dialog(parts, close));
  }, tell);

/** Pasting, and what was copied in n8n. */
const pasting = () => import("./pasting");

/** What starts tests. */
const testing = () => import("./starttest");
const loadTests = (editor: Editor, id: string, refresh: (s: TestState) => void) =>
  testing().then((m) => m.tests(editor, id, refresh));

/** The dialog that finds a type of node. */
const palette = () => import("./palette");
const openPalette = (triggers: boolean, pick: (t: NodeType) => void) =>
  palette().then(({ NodePalette }) => {
    openDialog((close) => <NodePalette title="Add a node" triggers={triggers} close={close} pick={pick} />);
  }, tell);

const workflowAt = <const M extends string[]>(id: string, ...more: M) =>
  path("agents", agentId.value, "workflows", id, ...more);
const docOf = (w: API.Workflow): Doc => ({
  name: w.name,
  description: w.description ?? "",
  settings: w.settings,
  ...readGraph(w),
});

/** Loads a workflow and the draft of it, and shows the editor. */
export function EditorPage({ id }: { id: string }) {
  const [loaded, setLoaded] = useState<{ workflow: API.Workflow; editor: Editor; draft?: Draft }>();
  const [error, setError] = useState<Error>();
  const load = async () => {
    try {
      setError(undefined);
      const [workflow, draft] = await Promise.all([
        get(workflowAt(id)),
        readDraft(agentId.value, id),
        loadCatalog(),
        get(path("agents", agentId.value, "settings")).then(
          (s) => {
            zone.value = s.timezone || "UTC";
          },
          () => {},
        ),
      ]);
      const editor = new Editor();
      const doc = docOf(workflow);
      const graph = await placed(doc);
      editor.load({ ...doc, ...graph });
      editor.readonly.value = !mayEdit.value;
      const chosen = route.value.query.get("node");
      if (chosen && editor.node(chosen)) editor.select([chosen]);
      setLoaded({
        workflow,
        editor,
        draft: draft && fingerprint(draft.doc) !== editor.saved.value ? draft : undefined,
      });
    } catch (e) {
      setError(asError(e));
    }
  };
  useEffect(() => {
    void load();
  }, [id]);
  if (error)
    return (
      <div class="page">
        <p class="crumb">
          <a href={href(agentId.value, "workflows")}>Workflows</a>
        </p>
        <h1 tabIndex={-1}>Workflow</h1>
        <ErrorCard error={error} retry={load} />
      </div>
    );
  if (!loaded)
    return (
      <div class="page">
        <Skeleton lines={6} title="Workflow" />
      </div>
    );
  return <Workflow key={id} {...loaded} />;
}

const phone = () => matchMedia("(max-width: 48rem)").matches;
type Tab = "" | "problems" | "test" | "versions" | "json";

function Workflow({ workflow: first, editor, draft: kept }: { workflow: API.Workflow; editor: Editor; draft?: Draft }) {
  const [workflow, setWorkflow] = useState(first);
  const [draft, setDraft] = useState(kept);
  const [outline, setOutline] = useState(phone);
  const [drafted, setDrafted] = useState<{ summary: string; before: Doc }>();
  const [test, setTest] = useState<TestState>({ running: false, results: [] });
  const flow = useRef<Flow | null>(null);
  const root = useRef<HTMLDivElement>(null);
  const pointer = useRef({ x: 0, y: 0 }); // of the mouse over the graph
  const id = workflow.id;
  const tab = (route.value.query.get("tab") ?? "") as Tab;
  const setTab = (t: Tab) => setQuery({ tab: t === tab ? null : t });
  const may = mayEdit.value;
  const node = editor.one.value;
  const dirty = editor.dirty.value;

  useSelectionInAddress(editor);
  useChecks(editor, workflow);
  const mine = useMemo(() => openDraft(agentId.value, id), []);
  useDrafts(editor, workflow, mine);
  useSamples(editor, id);
  useEffect(
    () =>
      whenIdle(() => {
        for (const load of [
          palette,
          pasting,
          testing,
          NodePanel.preload,
          TestPanel.preload,
          Versions.preload,
          GraphJson.preload,
        ])
          load().catch(() => {
            /* it is loaded when it is shown */
          });
      }),
    [],
  );
  const stored = useRef({ workflow, saving: Promise.resolve() });
  stored.current.workflow = workflow;
  useEffect(
    () =>
      onChange("workflow", async (c) => {
        // another tab or person saved it
        if (c.id !== id || c.op !== "update") return;
        await stored.current.saving; // the event of an own save comes before its answer
        const known = stored.current.workflow;
        if (
          c.row &&
          (c.row.version < known.version || (c.row.version === known.version && c.row.status === known.status))
        )
          return;
        if (!editor.dirty.value) await reload(false);
      }),
    [id],
  );

  const showStored = (now: API.Workflow) => {
    stored.current.workflow = now;
    setWorkflow(now);
  };
  const reload = async (announce = true) => {
    const now = await get(workflowAt(id));
    const doc = docOf(now);
    const shown = { ...doc, ...(await placed(doc)) };
    if (editor.dirty.value || fingerprint(shown) !== editor.saved.value) editor.load(shown); // else only its status changed, and what was done can still be undone
    showStored(now);
    if (announce) tell(`Showing version ${now.version}`);
  };
  const save = async (status?: string, version = workflow.version, note?: string): Promise<void> => {
    const doc = editor.doc.value;
    const body = {
      name: doc.name,
      description: doc.description,
      settings: doc.settings,
      ...writeGraph(doc),
      ...(status && { status }),
      ...(note && { note }),
    };
    const saved = put(workflowAt(id), body, { "If-Match": `"${version}"` });
    stored.current.saving = saved.then(showStored, () => {
      /* it is handled below */
    });
    try {
      const now = await saved;
      editor.saved.value = fingerprint(doc);
      await mine.drop();
      const was = workflow;
      tell(
        status && status !== was.status
          ? ({ active: "It is live", paused: "It is paused", draft: "Back to draft", archived: "It is archived" }[
              status
            ] ?? "Saved")
          : now.version === was.version
            ? "Saved"
            : `Saved as version ${now.version}`,
      );
    } catch (e) {
      if (e instanceof ApiError && (e.status === 409 || e.status === 412)) {
        const { ConflictDialog } = await import("./conflict");
        openDialog((close) => (
          <ConflictDialog
            editor={editor}
            base={workflow}
            close={close}
            reload={reload}
            overwrite={(joined, newest) => {
              editor.change(joined);
              return save(status, newest);
            }}
            copy={copyAside}
          />
        ));
        return;
      }
      const issues = issuesOf(e);
      if (!issues.length) throw e;
      editor.issues.value = issues;
      setQuery({ tab: "problems" });
      tell(e);
    }
  };
  const dropOffered = () => dropDraft(draft!.key).then(() => setDraft(undefined));
  const copyAside = async () => {
    const doc = editor.doc.value;
    const made = await post(path("agents", agentId.value, "workflows"), {
      name: `${doc.name} (copy)`,
      description: doc.description,
      settings: doc.settings,
      ...writeGraph(doc),
    });
    await mine.drop();
    editor.saved.value = fingerprint(doc);
    go(href(agentId.value, "workflows", made.id));
  };
  const tests = useRef<ReturnType<typeof loadTests>>(undefined);
  useEffect(
    () => () =>
      void tests.current?.then(
        ({ stop }) => stop(),
        () => {
          /* none was started */
        },
      ),
    [],
  );
  const run = async (...asked: [TestMode, Record<string, unknown>, string?]) =>
    (
      await (tests.current ??= loadTests(editor, id, setTest).catch((e) => {
        tests.current = undefined;
        throw e;
      }))
    ).run(...asked);
  const payloadNow = () => editor.payload.value ?? {};
  const runTest = (mode: TestMode, nodeId?: string) => {
    setQuery({ tab: "test" });
    return run(mode, payloadNow(), nodeId);
  };

  const actions = useMemo(() => {
    const add: CanvasActions["add"] = (to) => {
      openPalette(!to.after && !to.edge, (t) => {
        editor.add(t, to);
      });
    };
    const pick = (t: NodeType) => {
      const at = editor.one.value ?? onlyEnd(editor);
      editor.add(t, at && t.type !== "trigger" ? freeWay(editor, at.id) : {});
    };
    const remove = (ids: Set<string>) => {
      const edges = new Set(editor.selectedEdge.value ? [editor.selectedEdge.value] : []);
      if (!ids.size && !edges.size) return;
      editor.set(removeFrom(editor.doc.value, ids, edges));
      editor.select([]);
      editor.selectedEdge.value = "";
    };
    const view = () => root.current?.querySelector<HTMLElement>(".editor-view");
    const insert = async (text: string, mouse?: typeof pointer.current) => {
      const { besides, paste, pastePlace, readForeign } = await pasting();
      const part = readCopy(text) ?? (await readForeign(text));
      if (!part?.nodes.length && !part?.notes?.length) return;
      const by = mouse
        ? pastePlace(editor.doc.value, part, flow.current, view(), mouse)
        : besides(editor.doc.value, part);
      const { graph, ids } = paste(editor.doc.value, part, by.x, by.y);
      editor.set(graph);
      editor.select(ids);
    };
    const duplicate = (nodeId?: string) =>
      void insert(copyText(editor.doc.value, nodeId ? new Set([nodeId]) : new Set(editor.selected.value))).catch(tell);
    const open = (nodeId: string) => {
      editor.select([nodeId]);
      editor.focus.value = { field: "", at: Date.now() };
    };
    return {
      canvas: {
        add: may ? add : undefined,
        open,
        menu: (nodeId: string, at: MouseEvent) => {
          void more().then(
            (m) => m.nodeMenu(editor, nodeId, at, { open, duplicate, remove, test: may && runTest }),
            tell,
          );
        },
      },
      add,
      remove,
      paste: (text: string) => insert(text, pointer.current),
      open,
      duplicate,
      copy: () => copyText(editor.doc.value, new Set(editor.selected.value)),
      note: () => {
        const box = view()?.getBoundingClientRect();
        const at =
          box && flow.current?.screenToFlowPosition({ x: box.left + box.width / 2, y: box.top + box.height / 2 });
        if (at && editor.doc.value.nodes.length) editor.addNote(at.x - 120, at.y - 60);
      },
      tidy: async () => editor.set(await tidy(editor.doc.value)),
      fit: () =>
        flow.current?.fitView({
          maxZoom: 1,
          padding: 0.15,
          duration: matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 200,
        }),
      zoom: (by: number) => flow.current?.zoomTo(flow.current.getZoom() * by),
      connect: () => {
        const from = editor.one.value;
        if (from)
          void openMore(({ ConnectDialog }, close) => <ConnectDialog editor={editor} from={from} close={close} />);
      },
      pick,
      palette: () => openPalette(!editor.one.value, pick),
    };
  }, [editor, may]);
  const help = () => {
    void openMore(({ KeyHelp }, close) => <KeyHelp close={close} />);
  };
  const keys = editorKeys({
    editor,
    actions,
    save: () => {
      if (editor.dirty.value) void save(workflow.status === "active" ? "active" : undefined).catch(tell);
    },
    test: () => runTest("all"),
    help,
  });
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => keys.page(e);
    const onCopy = (e: ClipboardEvent) => keys.clipboard(e);
    const leave = (e: BeforeUnloadEvent) => {
      if (editor.dirty.value) e.preventDefault();
    };
    addEventListener("keydown", onKey);
    for (const name of ["copy", "cut", "paste"] as const) document.addEventListener(name, onCopy);
    addEventListener("beforeunload", leave);
    return () => {
      removeEventListener("keydown", onKey);
      for (const name of ["copy", "cut", "paste"] as const) document.removeEventListener(name, onCopy);
      removeEventListener("beforeunload", leave);
    };
  });

  const draftWithAI = async () => {
    const { DraftDialog } = await import("./ai");
    openDialog((close) => (
      <DraftDialog editor={editor} done={(summary, before) => setDrafted({ summary, before })} close={close} />
    ));
  };
  useEffect(() => {
    // from the list of workflows
    if (route.value.query.get("draft") !== "ai") return;
    setQuery({ draft: null });
    if (may) void draftWithAI().catch(tell);
  }, []);

  const live = workflow.status === "active";
  const status = (s: string) => () => save(s);
  const items: MenuItem[] = [
    {
      label: "Execute",
      icon: "Zap",
      disabled: !may || !["draft", "active"].includes(workflow.status),
      reason: may ? "It is paused." : "You have read-only access.",
      run: () => {
        openDialog((close) => (
          <Execute workflow={workflow} unsaved={editor.dirty.value} input={editor.payload.value} close={close} />
        ));
      },
    },
    {
      label: "Save with a note",
      icon: "StickyNote",
      disabled: !may || !dirty,
      reason: may ? "No changes." : "You have read-only access.",
      run: () =>
        openMore(({ NoteDialog }, close) => (
          <NoteDialog close={close} save={(note) => save(live ? "active" : undefined, undefined, note)} />
        )),
    },
    {
      label: "Name and settings",
      icon: "Settings",
      run: () => openMore(({ SettingsDialog }, close) => <SettingsDialog editor={editor} close={close} />),
    },
    {
      label: "Webhook address",
      icon: "Webhook",
      run: () =>
        openMore(({ HookCard }, close) => (
          <HookCard workflow={{ ...workflow, nodes: editor.doc.value.nodes }} close={close} />
        )),
    },
    {
      label: "Executions",
      icon: "Activity",
      run: () => go(`${href(agentId.value, "workflows")}?tab=executions&workflow=${encodeURIComponent(id)}`),
    },
    "-",
    {
      label: "Draft with AI",
      icon: "Sparkles",
      disabled: !may,
      reason: may ? undefined : "You have read-only access.",
      run: draftWithAI,
    },
    { label: "Tidy the graph", icon: "AlignLeft", disabled: !may, run: actions.tidy },
    { label: "Export", icon: "Download", run: async () => (await more()).exportFile(editor) },
    { label: "Keys", icon: "Keyboard", run: help },
    ...(may && workflow.status !== "draft"
      ? ["-" as const, { label: "Back to draft", icon: "Pencil" as const, run: status("draft") }]
      : []),
    ...(may && ["draft", "paused"].includes(workflow.status)
      ? [{ label: "Archive", icon: "Inbox" as const, run: status("archived") }]
      : []),
  ];
  const problems = editor.issues.value.length;
  const onlyWarnings = problems > 0 && editor.issues.value.every((i) => i.severity === "warning");
  return (
    <div class="page full editor-page" ref={root}>
      <header class="editor-bar">
        <a
          class="button quiet only"
          href={href(agentId.value, "workflows")}
          aria-label="All workflows"
          title="All workflows"
        >
          <Icon name="ArrowLeft" size={16} />
        </a>
        <h1 class="clip" tabIndex={-1}>
          <Name>{editor.doc.value.name}</Name>
        </h1>
        <Badge>{workflow.status}</Badge>
        <span class="muted small desk">v{workflow.version}</span>
        <span class={`saved-state small ${dirty ? "dirty" : "muted"}`} role="status">
          {dirty ? (
            "Unsaved"
          ) : (
            <>
              Saved{" "}
              <span class="desk">
                <When time={workflow.updated_at} />
              </span>
            </>
          )}
        </span>
        <Others at={id} editing={dirty} doing={{ one: "is editing", several: "are editing" }} />
        <span class="grow" />
        {may && (
          <span class="row nowrap desk">
            <Button
              kind="quiet"
              icon="Undo2"
              label="Undo"
              disabled={!editor.canUndo.value}
              onClick={() => editor.undo()}
            />
            <Button
              kind="quiet"
              icon="Redo2"
              label="Redo"
              disabled={!editor.canRedo.value}
              onClick={() => editor.redo()}
            />
          </span>
        )}
        {may && (
          <Button icon="Play" pressed={tab === "test"} onClick={() => setTab("test")}>
            Test
          </Button>
        )}
        {may && live && (
          <Button icon="Pause" onClick={() => save("paused")}>
            <span class="desk-text">Pause</span>
          </Button>
        )}
        {may && !live && workflow.status !== "archived" && (
          <Button onClick={() => save("active")}>{dirty ? "Save and go live" : "Go live"}</Button>
        )}
        {may &&
          (live ? (
            <Button kind="primary" disabled={!dirty} onClick={() => save("active")}>
              Save and go live
            </Button>
          ) : (
            <Button kind="primary" icon="Save" disabled={!dirty} onClick={() => save()}>
              Save
            </Button>
          ))}
        <Menu label="More" items={items} />
      </header>
      {draft && (
        <DraftOffer
          draft={draft}
          version={workflow.version}
          keep={async () => {
            const doc = { ...draft.doc, ...(await placed(draft.doc)) };
            editor.change(doc);
            await mine.keep(workflow.version, doc);
            await dropOffered();
          }}
          drop={dropOffered}
        />
      )}
      {drafted && dirty && (
        <div class="banner draft-offer" role="status">
          <Icon name="Sparkles" size={16} />
          <span class="grow">
            <bdi>{drafted.summary || "The draft is on the canvas."}</bdi> It isn't saved yet.
          </span>
          <Button
            onClick={() => {
              editor.change(drafted.before);
              setDrafted(undefined);
            }}
          >
            Drop it
          </Button>
          <Button kind="primary" onClick={() => setDrafted(undefined)}>
            Keep it
          </Button>
        </div>
      )}
      <div class={`editor-body ${node ? "with-panel" : ""} ${outline ? "as-outline" : ""}`}>
        {may && !outline && <NodeShelf pick={actions.pick} />}
        <div class="editor-center">
          <div
            class="editor-view"
            tabIndex={0}
            role="application"
            aria-label="Workflow graph"
            aria-roledescription="graph"
            onKeyDown={keys.canvas}
            onMouseMove={(e) => {
              pointer.current.x = e.clientX;
              pointer.current.y = e.clientY;
            }}
          >
            {outline ? (
              <Outline
                editor={editor}
                open={actions.open}
                menu={actions.canvas.menu}
                add={may ? actions.add : undefined}
              />
            ) : (
              <Canvas
                editor={editor}
                actions={actions.canvas}
                minimap
                onReady={(f) => {
                  flow.current = f;
                }}
              />
            )}
            {!editor.doc.value.nodes.length && (
              <div class="canvas-empty">
                <p>Every workflow starts with a trigger.</p>
                {may && (
                  <Button kind="primary" icon="Plus" onClick={() => actions.palette()}>
                    Add a node
                  </Button>
                )}
                {may && (
                  <Button icon="Sparkles" onClick={draftWithAI}>
                    Draft with AI
                  </Button>
                )}
              </div>
            )}
            <div class="canvas-tools">
              <Segments
                label="View"
                value={outline ? "outline" : "canvas"}
                options={[
                  ["canvas", <Icon name="Workflow" size={16} label="Canvas" />],
                  ["outline", <Icon name="ListTree" size={16} label="Outline" />],
                ]}
                onChange={(v) => setOutline(v === "outline")}
              />
              {!outline && (
                <>
                  <Button icon="ZoomOut" label="Smaller" onClick={() => actions.zoom(0.8)} />
                  <Button icon="Maximize" label="Fit the graph (1)" onClick={() => actions.fit()} />
                  <Button icon="ZoomIn" label="Larger" onClick={() => actions.zoom(1.25)} />
                </>
              )}
              {may && <Button icon="Plus" label="Add a node (Tab)" onClick={() => actions.palette()} />}
              {may && !outline && (
                <Button
                  icon="StickyNote"
                  label="Add a note (n)"
                  disabled={!editor.doc.value.nodes.length}
                  onClick={() => actions.note()}
                />
              )}
            </div>
          </div>
          <section class={`editor-bottom ${tab ? "open" : ""}`} aria-label="Details">
            <nav class="tabs">
              <button
                type="button"
                aria-current={tab === "problems" ? "page" : undefined}
                onClick={() => setTab("problems")}
              >
                Problems{" "}
                <span class={problems ? `tab-count ${onlyWarnings ? "warning" : ""}` : "muted"}>{problems}</span>
              </button>
              {may && (
                <button type="button" aria-current={tab === "test" ? "page" : undefined} onClick={() => setTab("test")}>
                  {test.results.length || test.running ? "Last test" : "Test"}
                </button>
              )}
              <button
                type="button"
                aria-current={tab === "versions" ? "page" : undefined}
                onClick={() => setTab("versions")}
              >
                Versions
              </button>
              <button type="button" aria-current={tab === "json" ? "page" : undefined} onClick={() => setTab("json")}>
                JSON
              </button>
              <span class="grow" />
              {tab && <Button kind="quiet" icon="ChevronDown" label="Close" onClick={() => setQuery({ tab: null })} />}
            </nav>
            {tab && (
              <div class="bottom-body">
                {tab === "problems" && <Problems editor={editor} />}
                {tab === "test" && may && (
                  <TestPanel editor={editor} workflow={id} state={test} run={run} compact={phone()} />
                )}
                {tab === "versions" && (
                  <Versions
                    id={id}
                    version={workflow.version}
                    live={live}
                    editor={editor}
                    restored={() => reload(false)}
                  />
                )}
                {tab === "json" && <GraphJson editor={editor} />}
              </div>
            )}
          </section>
        </div>
        {node && (
          <NodePanel
            key={node.id}
            editor={editor}
            node={node}
            workflow={workflow}
            actions={{
              duplicate: actions.duplicate,
              remove: actions.remove,
              test: runTest,
              tests: (refresh) => loadTests(editor, id, refresh),
              close: () => editor.select([]),
            }}
          />
        )}
      </div>
    </div>
  );
}

/** Where a new node is put behind another: its first way out that leads nowhere yet. */
function freeWay(editor: Editor, id: string) {
  const node = editor.node(id)!,
    type = typeOf(node.type);
  const ways = waysOut(node, type);
  const used = editor.doc.value.edges.filter((e) => e.source === id).map((e) => wayOf(e, node, type));
  return { after: id, way: ways.find((w) => !used.includes(w)) ?? ways[0] };
}

/** The node at which the graph ends, if it has one end. */
function onlyEnd(editor: Editor) {
  const { nodes, edges } = editor.doc.value;
  const ends = nodes.filter((n) => !edges.some((e) => e.source === n.id && e.sourceHandle !== "error"));
  return ends.length === 1 ? ends[0] : undefined;
}

/** The selected node stands in the address, and an address selects its node. */
function useSelectionInAddress(editor: Editor) {
  const wanted = route.value.query.get("node") ?? "";
  const written = useRef(wanted); // what this page itself put into the address is not followed: the selection may be elsewhere by now
  useEffect(() => {
    if (wanted === written.current) return;
    written.current = wanted;
    if (wanted && editor.node(wanted)) editor.select([wanted]);
  }, [wanted]);
  const selected = editor.one.value?.id ?? "";
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      if (wanted) return;
    }
    if ((route.value.query.get("node") ?? "") === selected) return;
    written.current = selected;
    setQuery({ node: selected || null });
  }, [selected]);
}

/** Checks the graph a moment after each change and save, as activation would. */
function useChecks(editor: Editor, saved: API.Workflow) {
  const { nodes, edges } = editor.doc.value;
  useEffect(() => {
    if (editor.readonly.value) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      post(path("agents", agentId.value, "workflows", "validate"), editor.written(), abort.signal).then(
        (r) => {
          editor.issues.value = r.issues ?? [];
        },
        () => {
          /* it is checked when it is saved */
        },
      );
    }, 400);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [nodes, edges, saved]);
}

/** Keeps what is not saved in this browser: a moment after each change, and at once when the editor closes. */
function useDrafts(editor: Editor, workflow: { version: number }, mine: ReturnType<typeof openDraft>) {
  const doc = editor.doc.value;
  const version = useRef(workflow.version);
  version.current = workflow.version;
  const kept = useRef({ doc, version: workflow.version });
  const keep = () => {
    // reads the editor itself: an effect of the last change may not have run when the editor closes
    const now = { doc: editor.doc.peek(), version: version.current };
    if (editor.readonly.peek() || (now.doc === kept.current.doc && now.version === kept.current.version)) return;
    kept.current = now;
    void (editor.dirty.peek() ? mine.keep(now.version, now.doc) : mine.drop());
  };
  useEffect(() => {
    const timer = setTimeout(keep, 250);
    return () => clearTimeout(timer);
  }, [doc, workflow.version]);
  useEffect(
    () => () => {
      keep();
      mine.release();
    },
    [],
  );
}

/** Reads the newest execution, so that templates are shown with real values. */
function useSamples(editor: Editor, id: string) {
  useEffect(() => {
    const abort = new AbortController();
    const load = async () => {
      const { executions } = await get(
        path("agents", agentId.value, "workflows", "executions"),
        { workflow_id: id, limit: 1 },
        abort.signal,
      );
      if (!executions.length) return;
      const x = await readExecution(agentId.value, executions[0].id, abort.signal);
      if (editor.payload.value === undefined) editor.payload.value = x.input ?? {};
      editor.samples.value = {
        ...Object.fromEntries(
          x.node_results
            .filter((r) => r.output !== undefined && !placeTruncated(r.output))
            .map((r) => [r.node_id, r.output]),
        ),
        ...editor.samples.value,
      };
    };
    load().catch(() => {
      /* the catalogue's examples are shown */
    });
    return () => abort.abort();
  }, [id]);
}

const placeTruncated = (output: unknown) => {
  const o = output as Partial<Preview> | null;
  return o?.truncated === true && typeof o.head === "string";
};
