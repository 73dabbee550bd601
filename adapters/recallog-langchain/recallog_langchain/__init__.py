"""A retriever and a chat history of LangChain in a memory of Recallog."""

from recallog_langchain.history import RecallogChatMessageHistory
from recallog_langchain.retriever import RecallogRetriever

__all__ = ["RecallogChatMessageHistory", "RecallogRetriever"]
