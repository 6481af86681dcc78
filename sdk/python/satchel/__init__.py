"""Client of Satchel: `Satchel` for synchronous code, `AsyncSatchel` for asyncio."""
from ._async import AsyncAgent, AsyncSatchel, AsyncSession
from ._core import ExecutionError, SatchelError
from ._sync import Agent, Satchel, Session
from .webhook import WebhookError, verify_webhook

__all__ = [
    "Agent", "AsyncAgent", "AsyncSatchel", "AsyncSession", "ExecutionError", "Satchel", "SatchelError", "Session",
    "WebhookError", "verify_webhook",
]
