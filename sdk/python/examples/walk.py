"""Creates an agent, uploads a document, asks, executes a workflow and reads a page
in a browser session: python walk.py ADDRESS [PAGE]"""
import asyncio
import os
import sys
import time

from satchel import AsyncSatchel, Satchel, SatchelError

HANDBOOK = b"# Returns\nBring a loaf back within two days and get your money back.\n"
NODES = [{"id": "t", "type": "trigger"}, {"id": "w", "type": "wait", "data": {"duration": 1, "unit": "seconds"}},
         {"id": "s", "type": "set", "data": {"values": {"hello": "{{name}}"}}}]
EDGES = [{"source": "t", "target": "w"}, {"source": "w", "target": "s"}]
ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8787"
PAGE = sys.argv[2] if len(sys.argv) > 2 else None
KEY = os.environ.get("SATCHEL_API_KEY")


def walk() -> None:
    with Satchel(ADDRESS, KEY) as satchel:
        made = satchel.create_agent(f"bakery-py-{time.time_ns()}")
        agent = satchel.agent(made["id"])
        source = agent.upload("handbook.md", HANDBOOK)
        print(f"{source['name']}: {source['status']}, {source['chunks']} chunks")
        for event, data in agent.stream("How do I get a refund?", fallback="passages"):
            if event == "delta":
                print(data["text"])
            elif event == "done":
                for passage in data["sources"]:
                    print(f"[{passage['number']}] {passage['metadata']['source_name']}: {passage['content']}")
        workflow = agent.request("POST", "/workflows", json={"name": "Greet", "status": "active", "nodes": NODES, "edges": EDGES})
        execution = agent.run(workflow["id"], {"name": "Ada"})
        print(f"workflow: {execution['status']} {execution.get('output')}")
        if PAGE:
            with agent.browse() as session:
                print(f"browser: {session.execute({'action': 'navigate', 'url': PAGE}, {'action': 'extract', 'selector': 'h1'})[1]}")
        try:
            agent.run("workflow-nowhere")
        except SatchelError as error:
            print(f"error: {error.code}")
        agent.request("DELETE", "")


async def walk_async() -> None:
    async with AsyncSatchel(ADDRESS, KEY) as satchel:
        made = await satchel.create_agent(f"bakery-aio-{time.time_ns()}")
        agent = satchel.agent(made["id"])
        await asyncio.gather(*(agent.upload(f"handbook-{n}.md", HANDBOOK) for n in range(3)))
        answer = await agent.ask("How do I get a refund?", fallback="passages")
        print(f"async: {answer['message']['content']} {len(answer['sources'])} passages")
        workflow = await agent.request("POST", "/workflows", json={"name": "Greet", "status": "active", "nodes": NODES, "edges": EDGES})
        execution = await agent.run(workflow["id"], {"name": "Ada"})
        print(f"async workflow: {execution['status']}")
        await agent.request("DELETE", "")


walk()
asyncio.run(walk_async())
